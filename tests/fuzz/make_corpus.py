#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_corpus.py FOLDER: writes those inputs of tests/fuzz/corpus that are in
other programs' formats. Needs NumPy and PyTorch; make_corpus.cc writes the
rest."""

import gzip
import io
import json
import pathlib
import pickle
import re
import struct
import sys
import zipfile

import numpy as np
import torch

HERE = pathlib.Path(__file__).parent
ROOT = pathlib.Path(sys.argv[1])


def write(target, name, content):
    path = ROOT / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def npy(values, dtype=None):
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(values, dtype))
    return buffer.getvalue()


def npz(save=np.savez, **arrays):
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return buffer.getvalue()


def torch_file(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def pickles(*values):
    return b"".join(pickle.dumps(value) for value in values)


def npy_files():
    """Files that numpy writes and stores do not contain, as each kind of table.
    """
    wide = np.arange(10).reshape(2, 5) % 4
    for name, kind, values in (
            ("fortran", 0, np.asfortranarray(wide * 0.5)),
            ("doubles", 0, wide.astype(">f8")), ("bools", 0, wide > 1),
            ("transposed", 1, wide.T), ("int16", 1, wide.astype(">i2")),
            ("square", 1, wide[:, :2]), ("mask", 2, wide[0] > 1),
            ("ids", 3, wide[0].astype(np.uint16)),
            ("pairs", 4, np.asfortranarray(wide[:, :2].astype(np.int16)))):
        write("npy", f"{name}_{kind}", bytes([kind]) + npy(values))


def npz_files():
    edges = np.arange(10).reshape(2, 5) % 4
    arrays = {"edge_index": edges, "format": np.array("coo"),
              "x": np.linspace(0, 1, 6).reshape(3, 2).astype(np.float16)}
    write("npz", "stored", npz(**arrays))
    write("npz", "deflated", npz(np.savez_compressed, **arrays))
    fortran = {"x": np.asfortranarray(np.arange(12).reshape(3, 4) > 5),
               "edge_index": np.asfortranarray(edges.astype(">i2"))}
    write("npz", "fortran", npz(**fortran))
    write("npz", "fortran_deflated", npz(np.savez_compressed, **fortran))
    write("npz", "text", npz(format=np.array(b"csr"), n=np.array(7)))


def torch_files():
    tensor = torch.arange(6.).view(2, 3)
    values = {"tensor": tensor, "view": tensor.t(), "dict": {"a": tensor},
              "int": torch.arange(5), "half": tensor.to(torch.bfloat16),
              "parameter": torch.nn.Parameter(tensor),
              "list": [tensor, {"k": (1, -2**40, 2**70, None, True)}]}
    for name, value in values.items():
        write("torch", name, torch_file(value))
        write("torch", name + "_legacy",
              torch_file(value, _use_new_zipfile_serialization=False))
    write("torch", "pickles", pickles(torch.arange(3), torch.arange(4)))
    for protocol in range(2, 6):
        write("torch", f"plain{protocol}", pickle.dumps(
            {"num_parts": 2, "data_cls": "homo", ("a", "b"): [b"c", 1.5]},
            protocol))


def torch_zip(pickled, storage=bytes(24)):
    """A file as torch.save writes it, with any pickle."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in (("a/data.pkl", pickled), ("a/data/0", storage)):
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def pickled_tensor(offset=0, sizes=(2, 3), strides=(3, 1), count=6):
    """The pickle of a float tensor with these values, valid or not."""
    def number(value):
        return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)

    def numbers(values):
        return b"(" + b"".join(map(number, values)) + b"t"
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
            b"ctorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpu" +
            number(count) + b"tQ" + number(offset) + numbers(sizes) +
            numbers(strides) + b"\x89}tR.")


def hostile_torch_files():
    """Tensors that exceed their storages, and lengths beyond the file."""
    most = 2**63 - 1
    for name, fields in {
            "sound": {}, "negative_size": {"sizes": (-2, 3)},
            "negative_stride": {"strides": (-3, 1)},
            "negative_offset": {"offset": -1}, "beyond": {"offset": 1},
            "many_sizes": {"sizes": (2**62, 2**62)},
            "no_sizes": {"sizes": (0, 2**62, 2**62), "strides": (1, 1, 1)},
            "many_strides": {"strides": (most, most)},
            "far_offset": {"offset": most}, "many_elements": {"count": most},
            "negative_count": {"count": -1}}.items():
        write("torch", f"view_{name}", torch_zip(pickled_tensor(**fields)))
    for size in (0, 23):
        write("torch", f"storage_of_{size}",
              torch_zip(pickled_tensor(), bytes(size)))
    write("torch", "long_text", torch_zip(b"\x80\x02X\xff\xff\xff\xffa."))
    write("torch", "long_bytes", torch_zip(b"\x80\x04\x8e" + b"\xff" * 8))


def csv_files():
    texts = {"integers": b"1,2\n3,4\n", "floats": b"0.5, -1e9\r\nnan,inf\n",
             "ragged": b"1\n2,3\n", "names": b"alice\tknows\tbob\nbob\tis\ta\n",
             "triples": b"0,1,2\n3 , 4,0\n"}
    for name, text in texts.items():
        for how in (0, 2, 4, 6, 14):
            write("csv", f"{name}{how}", bytes([how]) + text)
        write("csv", f"{name}_gz", bytes([1]) + gzip.compress(text, mtime=0))


def text_files():
    for name, text in {
            "config": "number = 3\n[run]\nname = \"a b\"\n",
            "list": "number = 4 # more\nother = [1,2,3]\n",
            "quoted": "[run]\nname = '''a\nb'''\nother=x;y\n"}.items():
        write("text", name, b"\0" + text.encode())
    for name, text in {"one": "127.0.0.1:80", "some": "a:1,[::1]:2,b:65535",
                       "file": "# servers\na:1\n\nb:2, c:3\n",
                       "dns": "dns:///a:1"}.items():
        write("text", name, b"\1" + text.encode())


def import_names():
    """The lists of support/import_files.h, in the order of the formats."""
    text = (HERE / "support" / "import_files.h").read_text()
    tables = re.findall(r"to_array<std::string_view>\(\s*\{(.*?)\}\)", text, re.S)
    return [re.findall(r'"([^"]*)"', table) for table in tables]


NAMES = import_names()


def folder(number, name, files, options=0):
    content = bytes([number, options])
    for file, data in files.items():
        data = data.encode() if isinstance(data, str) else data
        content += bytes([NAMES[number].index(file)])
        content += struct.pack("<H", len(data)) + data
    write("import", name, content)


def npy_folder():
    files = {"edges.npy": npy([[0, 1, 2, 2], [1, 2, 0, 3]]),
             "features.npy": npy(np.ones((4, 2), np.float32)),
             "labels.npy": npy([0, 1, 0, 2]), "times.npy": npy([1, 2, 3, 4]),
             "edge_weights.npy": npy([1., 2., 0.5, 1.]),
             "edge_times.npy": npy([4, 3, 2, 1]),
             "train.npy": npy([0, 2]),
             "test.npy": npy([False, True, False, True])}
    folder(0, "npy", files)
    folder(0, "npy_changed", files, 1 | 2 | 8 | 32)
    for name in ("edge_times.npy", "train.npy", "test.npy"):
        del files[name]
    folder(0, "npy_reverse", files, 4 | 16)


def ogb_folders():
    split = {"split/random/train.csv": "0\n", "split/random/valid.csv": "1\n",
             "split/random/test.csv": "2\n"}
    folder(1, "ogb", {
        "raw/edge.csv": "0,1\n1,2\n2,0\n", "raw/num-node-list.csv": "3\n",
        "raw/num-edge-list.csv": "3\n",
        "raw/node-feat.csv": "0.5,1\n2,3\n4,5\n",
        "raw/node-label.csv": "0\n1\nnan\n", "raw/node_year.csv": "1\n2\n3\n",
        "raw/edge-feat.csv": "1\n2\n3\n", **split})
    folder(1, "ogb_hetero", {
        "raw/triplet-type-list.csv": "a,to,b\n",
        "raw/num-node-dict.csv": "a,b\n3,2\n",
        "raw/nodetype-has-feat.csv": "a,b\nTrue,False\n",
        "raw/nodetype-has-label.csv": "a,b\nTrue,False\n",
        "raw/node-feat/a/node-feat.csv": "1\n2\n3\n",
        "raw/node-label/a/node-label.csv": "0\n1\n1\n",
        "raw/relations/a___to___b/edge.csv": "0,1\n2,0\n",
        "raw/relations/a___to___b/num-edge-list.csv": "2\n"})
    folder(1, "ogb_binary", {
        "raw/data.npz": npz(
            edge_index=np.array([[0, 1], [1, 2]]),
            num_nodes_list=np.array([3]), num_edges_list=np.array([2]),
            node_feat=np.ones((3, 2), np.float16)),
        "raw/node-label.npz": npz(node_label=np.zeros((3, 1))), **split})


def small_folders():
    folder(2, "tu", {
        "DS_A.txt": "1, 2\n2, 1\n3, 3\n", "DS_graph_indicator.txt": "1\n1\n2\n",
        "DS_graph_labels.txt": "-1\n1\n", "DS_node_labels.txt": "0\n1\n0\n",
        "DS_node_attributes.txt": "0.5, 1\n2, 3\n4, 5\n",
        "DS_edge_labels.txt": "0\n0\n1\n"})
    folder(3, "triples", {"train.txt": "a\tr\tb\nb\tr\tc\n",
                          "valid.txt": "a\ts\tc\n", "test.txt": "c\tr\ta\n"})
    folder(3, "triples_numbers", {
        "raw/num-node-list.csv": "3\n", "raw/num-relation-list.csv": "2\n",
        "split/a/train.csv": "0,0,1\n1,1,2\n", "split/a/valid.csv": "0,1,2\n",
        "split/a/test.csv": "2,0,0\n"})
    data = npz(feature=np.ones((3, 2)), label=np.array([0, 1, 0]),
               node_types=np.array([1, 2, 3]))
    folder(4, "reddit", {
        "reddit_data.npz": data,
        "reddit_graph.npz": npz(
            row=np.array([0, 1]), col=np.array([1, 2]),
            format=np.array(b"coo"), shape=np.array([3, 3]))})
    folder(4, "reddit_csr", {
        "reddit_data.npz": data,
        "reddit_graph.npz": npz(
            np.savez_compressed, indptr=np.array([0, 1, 2, 2]),
            indices=np.array([1, 2]), format=np.array(b"csr"),
            shape=np.array([3, 3]))})


def partition_folders():
    node_map, ids = torch.tensor([0, 0, 1]), torch.tensor([0, 1])
    files = {"META.json": json.dumps({"num_parts": 2, "is_hetero": False}),
             "node_map.pt": torch_file(node_map),
             "edge_map.pt": torch_file(torch.tensor([0, 1]))}
    for part, (nodes, edges) in enumerate((([0, 1], [0]), ([2], [1]))):
        nodes, edges = torch.tensor(nodes), torch.tensor(edges)
        files[f"part_{part}/graph.pt"] = torch_file(
            {"edge_id": edges, "row": edges, "col": edges + 1, "size": (3, 3)})
        files[f"part_{part}/node_feats.pt"] = torch_file(
            {"global_id": nodes, "feats": {"x": torch.ones(len(nodes), 2)}})
        files[f"part_{part}/edge_feats.pt"] = torch_file({})
    files["../DS-label/label.pt"] = torch_file(torch.tensor([0, 1, 1]))
    folder(5, "pyg", files)
    folder(6, "glt", {
        "META": pickle.dumps({"num_parts": 1, "data_cls": "homo"}),
        "node_pb.pt": torch_file(torch.zeros(3, dtype=torch.int64)),
        "edge_pb.pt": torch_file(torch.zeros(2, dtype=torch.int64)),
        "part0/graph/rows.pt": torch_file(ids),
        "part0/graph/cols.pt": torch_file(ids + 1),
        "part0/graph/eids.pt": torch_file(ids),
        "part0/node_feat/ids.pkl": pickles(torch.arange(3)),
        "part0/node_feat/feats.pkl": pickles(torch.ones(2, 2),
                                             torch.ones(1, 2)),
        "../DS-label/label.pt": torch_file(torch.tensor([0, 1, 1]))})


npy_files()
npz_files()
torch_files()
hostile_torch_files()
csv_files()
text_files()
npy_folder()
ogb_folders()
small_folders()
partition_folders()
