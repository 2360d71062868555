#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes partition folders with the layouts of PyG 2.5's Partitioner and GLT's
partitioners: make_partitions.py FOLDER. Exits with 77 if there is no PyTorch.
partition_formats_test.cc computes the same graphs by the same formulas."""

import collections
import json
import pathlib
import pickle
import sys
import types

try:
    import torch
except ImportError:
    sys.exit(77)

PARTS = 3
N, E = 40, 120
COUNTS = {"a": 30, "b": 20, "c": 10}
RELATIONS = {("a", "likes", "b"): 100, ("b", "by", "a"): 60}


def owners(count):
    v = torch.arange(count)
    return (v + v // 3) % PARTS


def endpoints(edges, sources, destinations):
    i = torch.arange(edges)
    return i * 7 % sources, (i * i + 3 * i) % destinations


def features(count, width):
    v = torch.arange(count, dtype=torch.float32)
    return torch.stack([v / (k + 1) for k in range(width)], 1)


def edge_features(edges):
    i = torch.arange(edges, dtype=torch.float32)
    return torch.stack([i, -i], 1)


def save(value, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(value, path, **options)


def companions(root, name, count, torch_save=save):
    torch_save(torch.arange(count) % 5, root / f"{name}-label" / "label.pt")
    ids = torch.arange(count).flip(0)
    for split, rest in (("train", 0), ("val", 1), ("test", 2)):
        seeds = ids[ids % 4 == rest]
        for part, share in enumerate(seeds.split(-(-len(seeds) // PARTS))):
            # This is a view, whose storage holds all seeds.
            torch_save(share, root / f"{name}-{split}-partitions" /
                       f"partition{part}.pt")


def link_splits(root, name):
    """Splits of edges, made as in PyG's example for MovieLens."""
    for split in ("train", "test"):
        folder = root / f"{name}-{split}-partitions"
        for path in folder.iterdir():
            save({"edge_label_index": torch.arange(6).view(2, 3),
                  "edge_label": torch.ones(3)}, path)


def in_order(edge_ids, columns):
    """The order in which PyG sorts the edges of a partition: by destination.
    """
    order = edge_ids[torch.argsort(columns[edge_ids], stable=True)]
    return order


def pyg_homogeneous(root, name, rich):
    folder = root / f"{name}-partitions"
    folder.mkdir(parents=True)
    (folder / "META.json").write_text(json.dumps({
        "num_parts": PARTS, "node_types": None, "edge_types": None,
        "node_offset": None, "is_hetero": False, "is_sorted": True}))
    node_map = owners(N)
    src, dst = endpoints(E, N, N)
    edge_map = node_map[dst]
    save(node_map, folder / "node_map.pt")
    save(edge_map, folder / "edge_map.pt")
    node_perm = torch.argsort(node_map, stable=True)
    x = features(N, 2)[node_perm]
    bounds = [0] + torch.cumsum(torch.bincount(node_map), 0).tolist()
    for part in range(PARTS):
        where = folder / f"part_{part}"
        ids = in_order(torch.nonzero(edge_map == part).flatten(), dst)
        # 2^35 is beyond 32 bits, like the node counts of large graphs.
        save({"edge_id": ids, "row": src[ids], "col": dst[ids],
              "size": (N, 2**35 if rich else N)}, where / "graph.pt")
        start, end = bounds[part], bounds[part + 1]
        nodes = {"global_id": node_perm[start:end],
                 "feats": {"x": x[start:end]}}
        edges = collections.defaultdict()
        if rich:
            nodes["time"] = torch.arange(N) * 3
            edges["global_id"] = ids
            edges["feats"] = {"edge_attr": edge_features(E)[ids]}
            edges["edge_time"] = ids * 13 % 17 + 3 * N  # after all nodes
        save(nodes, where / "node_feats.pt")
        save(edges, where / "edge_feats.pt")
    companions(root, name, N)


def pyg_heterogeneous(root, name):
    folder = root / f"{name}-partitions"
    folder.mkdir(parents=True)
    offsets, offset = {}, 0
    for node_type, count in COUNTS.items():
        offsets[node_type] = offset
        offset += count
    (folder / "META.json").write_text(json.dumps({
        "num_parts": PARTS, "node_types": list(COUNTS),
        "edge_types": [list(relation) for relation in RELATIONS],
        "node_offset": list(offsets.values()), "is_hetero": True,
        "is_sorted": True}))
    for node_type, count in COUNTS.items():
        save(owners(count), folder / "node_map" / f"{node_type}.pt")
    # to_homogeneous() pads to the widest type; types without features get NaN.
    x = {"a": features(COUNTS["a"], 3),
         "b": torch.nn.functional.pad(features(COUNTS["b"], 2), (0, 1)),
         "c": torch.full((COUNTS["c"], 3), float("nan"))}
    graph = [{} for _ in range(PARTS)]
    edges = [collections.defaultdict(dict) for _ in range(PARTS)]
    edge_offset = 0
    for relation, count in RELATIONS.items():
        sources, destinations = COUNTS[relation[0]], COUNTS[relation[2]]
        src, dst = endpoints(count, sources, destinations)
        edge_map = owners(destinations)[dst]
        save(edge_map, folder / "edge_map" / ("__".join(relation) + ".pt"))
        for part in range(PARTS):
            ids = in_order(torch.nonzero(edge_map == part).flatten(), dst)
            graph[part][relation] = {
                "edge_id": ids + edge_offset, "row": src[ids],
                "col": dst[ids], "size": (sources, destinations)}
            # to_homogeneous() also fills in NaN here.
            attr = edge_features(count)[ids]
            if relation[1] != "by":
                attr = torch.full_like(attr, float("nan"))
            edges[part][relation].update(
                {"global_id": ids, "feats": {"edge_attr": attr}})
        edge_offset += count
    for part in range(PARTS):
        where = folder / f"part_{part}"
        nodes = {}
        for node_type, count in COUNTS.items():
            ids = torch.nonzero(owners(count) == part).flatten()
            nodes[node_type] = {"global_id": ids + offsets[node_type],
                                "id": ids,
                                "feats": {"x": x[node_type][ids]}}
        save(graph[part], where / "graph.pt")
        save(nodes, where / "node_feats.pt")
        save(edges[part], where / "edge_feats.pt")
    companions(root, name, COUNTS["b"])


def pyg_integers(root, name):
    """Integer features, for which to_homogeneous() fills in -1, and the times
    of some nodes and edges, without ids of their own."""
    folder = root / f"{name}-partitions"
    folder.mkdir(parents=True)
    (folder / "META.json").write_text(json.dumps({
        "num_parts": PARTS, "node_types": list(COUNTS),
        "edge_types": [list(relation) for relation in RELATIONS],
        "is_hetero": True}))
    x = {kind: torch.stack([torch.arange(count) % 7, -torch.arange(count)], 1)
         for kind, count in COUNTS.items()}
    x["c"] = torch.full((COUNTS["c"], 2), -1)
    for kind, count in COUNTS.items():
        save(owners(count), folder / "node_map" / f"{kind}.pt")
    nodes, graph, edges = ([{} for _ in range(PARTS)] for _ in range(3))
    for part in range(PARTS):
        for kind, count in COUNTS.items():
            ids = torch.nonzero(owners(count) == part).flatten()
            nodes[part][kind] = {"id": ids, "feats": {"x": x[kind][ids]}}
        nodes[part]["b"]["time"] = torch.arange(COUNTS["b"]) * 2
    offset = 0
    for relation, count in RELATIONS.items():
        src, dst = endpoints(count, COUNTS[relation[0]], COUNTS[relation[2]])
        edge_map = torch.arange(count) % 2  # part 2 has no edges
        save(edge_map, folder / "edge_map" / ("__".join(relation) + ".pt"))
        for part in range(2):
            ids = torch.nonzero(edge_map == part).flatten()
            graph[part][relation] = {"edge_id": ids + offset, "row": src[ids],
                                     "col": dst[ids]}
            if relation[1] == "by":
                edges[part][relation] = {"edge_time": ids * 3 + 1000}
        offset += count
    for part in range(PARTS):
        where = folder / f"part_{part}"
        save(graph[part], where / "graph.pt")
        save(nodes[part], where / "node_feats.pt")
        save(edges[part], where / "edge_feats.pt")


def pickled(tensor, path, rows=7):
    """Appends pickled chunks, as GLT does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        for chunk in tensor.split(rows):
            pickle.dump(chunk, file)


def glt_features(where, ids, values):
    pickled(ids, where / "ids.pkl")
    pickled(values[ids], where / "feats.pkl")


def glt_meta(folder, node_types=None, edge_types=None):
    folder.mkdir(parents=True)
    with open(folder / "META", "wb") as file:
        pickle.dump({"num_parts": PARTS,
                     "data_cls": "hetero" if node_types else "homo",
                     "node_types": node_types, "edge_types": edge_types},
                    file, pickle.HIGHEST_PROTOCOL)


def glt_topology(where, src, dst, ids, weights=None):
    save(src[ids], where / "rows.pt")
    save(dst[ids], where / "cols.pt")
    save(ids, where / "eids.pt")
    if weights is not None:
        save(weights[ids], where / "weights.pt")


def glt_homogeneous(root, name, cached=False, legacy=False):
    folder = root / f"{name}-partitions"
    glt_meta(folder)
    options = {"_use_new_zipfile_serialization": not legacy}
    node_pb = owners(N)
    src, dst = endpoints(E, N, N)
    weights = torch.arange(E, dtype=torch.float32) % 4 / 2
    edge_pb = node_pb[src]
    save(node_pb, folder / "node_pb.pt", **options)
    save(edge_pb, folder / "edge_pb.pt", **options)
    if cached:  # the edges of part 0, of part 1, ...; no eids
        ids = torch.argsort(edge_pb, stable=True)
        save(src[ids], folder / "graph" / "rows.pt")
        save(dst[ids], folder / "graph" / "cols.pt")
        save(weights[ids], folder / "graph" / "weights.pt")
    for part in range(PARTS):
        where = folder / f"part{part}"
        edges = torch.nonzero(edge_pb == part).flatten()
        nodes = torch.nonzero(node_pb == part).flatten().flip(0)
        if not cached:
            glt_topology(where / "graph", src, dst, edges, weights)
        glt_features(where / "node_feat", nodes, features(N, 2))
        glt_features(where / "edge_feat", edges, edge_features(E))
    companions(root, name, N, lambda value, path: save(value, path, **options))


def partition_book(tensor):
    """A subclass of Tensor that pickles like GLT's."""
    name = "graphlearn_torch.partition.base"
    for i in range(3):
        module = ".".join(name.split(".")[:i + 1])
        sys.modules.setdefault(module, types.ModuleType(module))
    book = type("GLTPartitionBook", (torch.Tensor,), {"__module__": name})
    sys.modules[name].GLTPartitionBook = book
    return tensor.as_subclass(book)


def glt_heterogeneous(root, name, cached=False):
    folder = root / f"{name}-partitions"
    glt_meta(folder, list(COUNTS), list(RELATIONS))
    for node_type, count in COUNTS.items():
        book = owners(count)
        if node_type == "c":
            save(partition_book(book), folder / "node_pb" / "c.pt")
            continue
        save(book, folder / "node_pb" / f"{node_type}.pt")
        width = {"a": 3, "b": 2}[node_type]
        for part in range(PARTS):
            glt_features(folder / f"part{part}" / "node_feat" / node_type,
                         torch.nonzero(book == part).flatten(),
                         features(count, width))
    for relation, count in RELATIONS.items():
        src, dst = endpoints(count, COUNTS[relation[0]], COUNTS[relation[2]])
        book = owners(COUNTS[relation[0]])[src]
        key = "__".join(relation)
        save(book, folder / "edge_pb" / f"{key}.pt")
        if cached:
            ids = torch.argsort(book, stable=True)
            save(src[ids], folder / "graph" / key / "rows.pt")
            save(dst[ids], folder / "graph" / key / "cols.pt")
        for part in range(PARTS):
            ids = torch.nonzero(book == part).flatten()
            where = folder / f"part{part}"
            if not cached:
                glt_topology(where / "graph" / key, src, dst, ids)
            if relation[1] == "by":
                glt_features(where / "edge_feat" / key, ids,
                             edge_features(count))
    companions(root, name, COUNTS["b"])


class Evil:
    def __reduce__(self):
        return (print, ("this must never run",))


def bad_files(root):
    root.mkdir()
    save({"x": Evil()}, root / "evil.pt")
    save(torch.nn.Linear(2, 3), root / "module.pt")
    torch.jit.script(torch.nn.Linear(2, 3)).save(str(root / "script.pt"))
    save(torch.arange(6, dtype=torch.int16), root / "short.pt")
    save(torch.ones(3, dtype=torch.complex64), root / "complex.pt")
    save(torch.nn.Parameter(torch.arange(3.)), root / "parameter.pt")
    save(torch.ones(1).expand(10**12), root / "expanded.pt")
    save(torch.arange(6).view(2, 3).t(), root / "transposed.pt")
    save([torch.arange(3), {"k": (1, -2**40, None, True)}], root / "list.pt")
    save(torch.arange(8)[2:5], root / "legacy.pt",
         _use_new_zipfile_serialization=False)
    save(torch.tensor([1.5, -2], dtype=torch.bfloat16), root / "bfloat16.pt")


def main():
    root = pathlib.Path(sys.argv[1])
    pyg_homogeneous(root / "pyg", "rich", True)
    pyg_homogeneous(root / "pyg", "plain", False)
    pyg_heterogeneous(root / "pyg", "hetero")
    pyg_integers(root / "pyg", "integers")
    pyg_homogeneous(root / "pyg", "links", False)
    link_splits(root / "pyg", "links")
    glt_homogeneous(root / "glt", "plain")
    glt_homogeneous(root / "glt", "cached", cached=True)
    glt_homogeneous(root / "glt", "legacy", legacy=True)
    glt_heterogeneous(root / "glt", "hetero")
    glt_heterogeneous(root / "glt", "cachedhetero", cached=True)
    bad_files(root / "bad")


main()
