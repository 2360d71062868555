#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the system: manual pages without warnings, and completion in three shells.
. "$(dirname "$0")/lib.sh"
pages=(/usr/share/man/man1/millrace*.1.gz)
((${#pages[@]} >= 16))
for page in "${pages[@]}"; do
  man --warnings -E UTF-8 -l -Tutf8 -Z "$page" >/dev/null 2>/tmp/man.txt
  [[ ! -s /tmp/man.txt ]] || { cat /tmp/man.txt; exit 1; }
  # The pages have no date, because the options have none.
  zcat "$page" >/tmp/page.1
  mandoc -Tlint -Wwarning /tmp/page.1 >/tmp/lint.txt || :
  never grep -v 'missing date' /tmp/lint.txt
done
man millrace-server >/tmp/man.txt
grep -q -e --drain-timeout /tmp/man.txt
man millrace-import >/tmp/man.txt
grep -q 'MILLRACE IMPORT OGB' /tmp/man.txt
mandb -q
man -k millrace >/tmp/man.txt
grep -q millrace-train /tmp/man.txt

# Each shell loads what the package has put where it looks.
cat >/tmp/complete.bash <<'END'
. /usr/share/bash-completion/bash_completion
for words in 'millrace imp' 'millrace-server --graph-memory r' \
  'millrace-train --model gatv'; do
  read -ra COMP_WORDS <<<"$words"
  _completion_loader "${COMP_WORDS[0]}" || (($? == 124))
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  $(complete -p "${COMP_WORDS[0]}" | sed 's/.*-F \([^ ]*\).*/\1/')
  echo "${COMPREPLY[*]}"
done
END
bash /tmp/complete.bash >/tmp/bash.txt
diff /tmp/bash.txt - <<<$'import\nram\ngatv2'
fish -c 'for words in "millrace imp" "millrace-server --graph-memory r" \
  "millrace-train --model gatv"; complete -C $words; end' | cut -f 1 >/tmp/fish.txt
diff /tmp/fish.txt - <<<$'import\nram\ngatv2'
# zsh completes only at a terminal, which the module zpty stands in for.
cat >/tmp/complete.zsh <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -U compinit; compinit -u -D; print read\y'
zpty -r shell line '*ready*'
zpty -w -n shell $'millrace-server --graph-memory r\t'
zpty -r shell line '*--graph-memory ram*' && print completed
zpty -d shell
END
timeout 60 zsh -f /tmp/complete.zsh | grep -q completed
