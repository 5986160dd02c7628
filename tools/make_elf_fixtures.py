"""Builds tests/fixtures/elf/: small ELF files with real fat binaries.

    python tools/make_elf_fixtures.py [DIR]
 Needs nvcc 13.0 or later, gcc and binutils. The fat binaries mirror those of NVIDIA's NCCL wheels, with one
trivial kernel in place of NCCL's. What the compiler at hand cannot build any more is built for another
architecture, and the entry is retagged.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from pathlib import Path

MAGIC = (0xBA55ED50).to_bytes(4, "little")
# Built for the left one, retagged to the right one. sm_86, 87 and 88 stand in for architectures that CUDA 13
# dropped.
DROPPED = {75: 50, 86: 60, 87: 61, 88: 70}
KERNEL = """
extern "C" __global__ void {name}(float *p) {{ p[threadIdx.x] += 1.f; }}
extern "C" const char {name}_banner[] = "{text}";
"""
LINK = [
    "-shared",
    "-nostdlib",
    "-s",
    "-Wl,-z,noseparate-code",
    "-Wl,--build-id=none",
    "-Wl,-z,max-page-size=4096",
]


def sh(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def code(*archs: str, ptx: str = "") -> list[str]:
    """Options of nvcc: machine code for '90', '100f', and PTX of `ptx`."""
    options = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in archs]
    return options + ([f"-gencode=arch=compute_{ptx},code=compute_{ptx}"] if ptx else [])


def compile_cu(cwd: Path, name: str, options: list[str], text: str = "", mode: str = "size") -> str:
    """Compiles one kernel to an object file; returns the file's name."""
    (cwd / f"{name}.cu").write_text(KERNEL.format(name=name.replace("-", "_"), text=text))
    sh(
        "nvcc",
        "-c",
        f"{name}.cu",
        "-o",
        f"{name}.o",
        "-Xcompiler",
        "-fPIC",
        f"--compress-mode={mode}",
        *options,
        cwd=cwd,
    )
    return f"{name}.o"


def retag(path: Path, mapping: dict[int, int], containers: set[int] | None = None) -> None:
    """Changes the architecture of entries, in all fat binaries of a file or in those with these numbers."""
    data = bytearray(path.read_bytes())
    at, number = data.find(MAGIC), 0
    while at >= 0:
        header, size = struct.unpack_from("<HQ", data, at + 6)
        entry, end = at + header, at + header + size
        while entry < end:
            width, payload, arch = struct.unpack_from("<IQ12xI", data, entry + 4)
            if arch in mapping and (containers is None or number in containers):
                struct.pack_into("<I", data, entry + 28, mapping[arch])
            entry += width + payload
        at, number = data.find(MAGIC, end), number + 1
    path.write_bytes(data)


def linked(cwd: Path, out: Path, text: str, archs: list[str], ptx: str) -> None:
    """A library as NCCL is: two relocatable objects with PTX, and the device-linked result without."""
    options = code(*archs, ptx=ptx)
    objects = [compile_cu(cwd, name, ["-rdc=true", *options], text) for name in ("first", "second")]
    sh(
        "nvcc",
        "-dlink",
        "--compress-mode=size",
        "-o",
        "dlink.o",
        "-Xcompiler",
        "-fPIC",
        *code(*archs),
        *objects,
        cwd=cwd,
    )
    sh("gcc", *LINK, "-Wl,-soname,libnccl.so.2", "-o", str(out), *objects, "dlink.o", cwd=cwd)


def gpu_fixtures(cwd: Path, out: Path) -> None:
    old = ["75", "80", "86", "87", "88", "90"]
    linked(cwd, out / "nccl-2.26.2.so", "NCCL version 2.26.2+cuda12.2", old, "90")
    retag(out / "nccl-2.26.2.so", DROPPED)
    linked(cwd, out / "nccl-2.26.5.so", "NCCL version 2.26.5+cuda12.9", [*old, "100", "120"], "120")
    retag(out / "nccl-2.26.5.so", DROPPED)

    # As NCCL 2.28.9 for CUDA 12: whole programs beside extras for the sm_100 family.
    general = [
        compile_cu(
            cwd, f"general{i}", code("80", "90", "100", "120", ptx="120"), "NCCL version 2.28.9+cuda12.9"
        )
        for i in range(3)
    ]
    extra = compile_cu(cwd, "extra", code("100f"))
    lto = compile_cu(cwd, "lto", ["-rdc=true", "-gencode=arch=compute_90,code=lto_90"])
    sh("gcc", *LINK, "-o", str(out / "nccl-2.28.9.so"), *general, extra, lto, cwd=cwd)
    # One of the three has neither machine code nor PTX for sm_90.
    (out / "partial.so").write_bytes((out / "nccl-2.28.9.so").read_bytes())
    retag(out / "partial.so", {90: 86}, {1})

    variants = compile_cu(cwd, "variants", code("90", "90a", "100a", "103a", "120f", ptx="90a"))
    (out / "variants.o").write_bytes((cwd / variants).read_bytes())
    # Stored, LZ4 and zstd.
    modes = [
        compile_cu(cwd, f"mode-{mode}", code("80", ptx="80"), mode=mode) for mode in ("none", "speed", "size")
    ]
    sh("gcc", *LINK, "-o", str(out / "compression.so"), *modes, cwd=cwd)
    (out / "nccl_static.a").unlink(missing_ok=True)
    sh("ar", "rcsD", str(out / "nccl_static.a"), general[0], extra, cwd=cwd)


def loader_fixtures(cwd: Path, out: Path) -> None:
    """Libraries that need NCCL or hold it, as PyTorch's do, with the search path of its wheels."""
    (cwd / "empty.c").write_text("int nothing;\n")
    for name in ("libnccl.so.2", "libc10.so"):
        sh("gcc", *LINK, f"-Wl,-soname,{name}", "-o", name, "empty.c", cwd=cwd)
    for tags in ("rpath", "runpath"):
        option = "--disable-new-dtags" if tags == "rpath" else "--enable-new-dtags"
        paths = "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib:$ORIGIN"
        sh(
            "gcc",
            *LINK,
            f"-Wl,{option}",
            paths,
            "-Wl,--no-as-needed",
            "-o",
            str(out / f"torch-{tags}.so"),
            "empty.c",
            "libnccl.so.2",
            "libc10.so",
            cwd=cwd,
        )
    sh(
        "gcc",
        *LINK,
        "-Wl,--no-as-needed",
        "-o",
        str(out / "torch-static.so"),
        "general0.o",
        "libc10.so",
        cwd=cwd,
    )
    sh("gcc", *LINK, "-o", str(out / "no-gpu-code.so"), "empty.c", cwd=cwd)
    sh("gcc", "-c", "-m32", "-ffreestanding", "-o", str(out / "32-bit.o"), "empty.c", cwd=cwd)


def main() -> None:
    out = Path(
        sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "tests/fixtures/elf"
    ).resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        gpu_fixtures(Path(folder), out)
        loader_fixtures(Path(folder), out)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:8}  {path.name}")


if __name__ == "__main__":
    main()
