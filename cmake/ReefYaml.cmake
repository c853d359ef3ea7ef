# libyaml for src/io/yaml.c, the only file that sees it. Sets
#   reef_yaml_libraries    for target_link_libraries; empty without libyaml
#   reef_yaml_pc           for Libs.private of reef.pc
#   reef_yaml_hidden       a linker option of the shared library: the names of a libyaml inside it are nobody else's
set(REEF_YAML AUTO CACHE STRING "Read YAML with libyaml: ON, OFF, AUTO (if it is there), or STATIC (linked in: for the wheel)")
set(reef_yaml_libraries "")
set(reef_yaml_pc "")
set(reef_yaml_hidden "")

if(REEF_YAML)
  find_path(YAML_INCLUDE_DIR yaml.h)
  if(REEF_YAML STREQUAL STATIC)
    find_library(YAML_LIBRARY libyaml.a)
    set(reef_yaml_hidden "LINKER:--exclude-libs,libyaml.a")
  else()
    find_library(YAML_LIBRARY yaml)
  endif()
  mark_as_advanced(YAML_INCLUDE_DIR YAML_LIBRARY)
  if(YAML_INCLUDE_DIR AND YAML_LIBRARY)
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_INCLUDES ${YAML_INCLUDE_DIR})
    set(CMAKE_REQUIRED_LIBRARIES ${YAML_LIBRARY})
    check_c_source_compiles("#include <yaml.h>
      int main(void) { yaml_parser_t parser; return yaml_parser_initialize(&parser) != 1; }" REEF_YAML_WORKS)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
  endif()
  if(REEF_YAML_WORKS)
    set_source_files_properties(src/io/yaml.c PROPERTIES COMPILE_DEFINITIONS REEF_HAVE_YAML
                                                         INCLUDE_DIRECTORIES ${YAML_INCLUDE_DIR})
    # Others link it by its name: the path is this machine's.
    set(reef_yaml_libraries $<BUILD_INTERFACE:${YAML_LIBRARY}> $<INSTALL_INTERFACE:yaml>)
    set(reef_yaml_pc -lyaml)
  elseif(NOT REEF_YAML STREQUAL AUTO)
    message(FATAL_ERROR "REEF_YAML=${REEF_YAML}, but there is no working yaml.h with libyaml")
  endif()
endif()
