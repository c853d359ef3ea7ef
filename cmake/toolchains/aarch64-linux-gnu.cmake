# 64-bit Arm Linux from another machine, tests under qemu: Debian's cross compiler with its libraries of architecture
# arm64 (scripts/bootstrap.sh aarch64), which lie beside our own, so that neither compiler nor emulator needs a sysroot.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
find_program(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 REQUIRED)
