# Compiler flags of everything built here; none of them reaches those who use the installed library.
#   reef_flags                 for every target: warnings, floating-point rules, sanitizers
#   reef_shared_link_options   for the shared library, which must not export a dependency on reef_flags

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

add_library(reef_flags INTERFACE)
if(REEF_SANITIZE)
  set(reef_sanitize_flags -fsanitize=${REEF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(REEF_FUZZ)
    # Coverage for the fuzzer in all code; its main() comes only with the fuzz targets.
    list(APPEND reef_sanitize_flags -fsanitize=fuzzer-no-link)
  endif()
  target_compile_options(reef_flags INTERFACE ${reef_sanitize_flags})
  target_link_options(reef_flags INTERFACE ${reef_sanitize_flags})
  set(reef_shared_link_options ${reef_sanitize_flags})
elseif(CMAKE_SYSTEM_NAME STREQUAL Linux)
  # A missing symbol is an error when the shared library is made, not when a user starts a program.
  set(reef_shared_link_options LINKER:-z,defs)
endif()

# Hardening, for what is meant to be used: an overflow ends the process instead of being of use to whoever caused it; tables of addresses
# are read-only, addresses random, returns and calls guarded where the processor can. docs/testing.md has the cost. Sanitized builds do
# more of it themselves; without optimisation _FORTIFY_SOURCE only warns. scripts/check_binaries.sh looks at what comes out.
option(REEF_HARDEN "Stack protector, _FORTIFY_SOURCE, read-only relocations, position-independent programs" ON)
set(reef_hardened OFF)
if(REEF_HARDEN AND NOT REEF_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  set(reef_hardened ON)
  include(CheckCCompilerFlag)
  target_compile_options(reef_flags INTERFACE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  check_c_compiler_flag(-fcf-protection=full REEF_HAVE_CF_PROTECTION)
  if(REEF_HAVE_CF_PROTECTION)
    target_compile_options(reef_flags INTERFACE -fcf-protection=full)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    target_compile_options(reef_flags INTERFACE -mbranch-protection=standard)
  endif()
  if(CMAKE_SYSTEM_NAME STREQUAL Linux)
    set(reef_hardened_link_options LINKER:-z,relro,-z,now,-z,noexecstack)
    target_link_options(reef_flags INTERFACE ${reef_hardened_link_options})
    list(APPEND reef_shared_link_options ${reef_hardened_link_options})
  endif()
  # Programs at random addresses: objects and the link alike.
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES C)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()

# POSIX 2008 with its XSI part.
target_compile_definitions(reef_flags INTERFACE _XOPEN_SOURCE=700)
target_compile_options(
  reef_flags
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            # gcc only: clang also complains about each NAN and INFINITY, which are float constants in C.
            $<$<C_COMPILER_ID:GNU>:-Wdouble-promotion>
            -Wstrict-prototypes
            -Wmissing-prototypes
            -Wvla
            # Results must not depend on what the compiler fuses; nobody reads errno after sqrt.
            -ffp-contract=off
            -fno-math-errno)
