# Tests, examples and fuzz targets. One file is one executable and one ctest entry.

include(cmake/ReefThreadTests.cmake)

# A test that is not built because something is not installed: scripts/test.sh names it.
function(reef_leave_out reason name)
  set_property(GLOBAL APPEND_STRING PROPERTY reef_left_out "${reason}\t${name}\n")
endfunction()

# The name of a test: tests/agg/test_plan.c is agg.plan, and so would be tests/agg/rules/test_plan.c
function(reef_test_name source result)
  cmake_path(GET source STEM name)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "/.*" "" folder ${folder})
  string(REGEX REPLACE "^test_" "${folder}." name ${name})
  set(${result} ${name} PARENT_SCOPE)
endfunction()

# Tests that start a real server: they run by `ctest -C server` alone (make test-net).
set(reef_server_tests net.agent net.link_nats net.hostile net.strangers)

# Tests of many processor seconds: ctest begins with them, so that none is left alone at the end.
set(reef_long_tests agg.tables graph.allocation kernels.bits kernels.gram kernels.oracle kernels.report learn.large learn.mref_figures
    net.rounds)

# Registers a test. Those of reef_thread_tests get the label `threads`: the ones to run under ThreadSanitizer.
function(reef_add_test name target timeout)
  if(name IN_LIST reef_server_tests)
    add_test(NAME ${name} COMMAND ${target} CONFIGURATIONS server)
    set_tests_properties(${name} PROPERTIES LABELS server)
  else()
    add_test(NAME ${name} COMMAND ${target})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} ENVIRONMENT "${reef_test_environment}")
  if(name IN_LIST reef_long_tests)
    set_tests_properties(${name} PROPERTIES COST 100)
  endif()
  if(name IN_LIST reef_thread_tests)
    set_property(TEST ${name} APPEND PROPERTY LABELS threads)
    set_property(GLOBAL APPEND PROPERTY reef_thread_tests_found ${name})
    set_property(GLOBAL APPEND PROPERTY reef_thread_targets ${target})
  endif()
endfunction()

# What a sanitizer should do besides stopping at the first finding.
set(reef_test_environment "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
                          "UBSAN_OPTIONS=print_stacktrace=1" "TSAN_OPTIONS=halt_on_error=1")

if(REEF_EXAMPLES)
  file(GLOB reef_example_sources CONFIGURE_DEPENDS examples/*.c)
  foreach(source IN LISTS reef_example_sources)
    cmake_path(GET source STEM name)
    add_executable(example_${name} ${source})
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                                                     RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    # The shared library, as a user would: what is not exported cannot be used.
    target_link_libraries(example_${name} PRIVATE reef_shared reef_flags m)
    reef_add_test(example.${name} example_${name} 120)
  endforeach()
endif()

# The example of a plug-in, not linked with the library: what it needs it is handed.
if(REEF_EXAMPLES)
  add_library(example_plugin MODULE examples/plugin/plugin.c)
  set_target_properties(example_plugin PROPERTIES OUTPUT_NAME plugin PREFIX "" C_VISIBILITY_PRESET hidden
                                                  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_include_directories(example_plugin PRIVATE include ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(example_plugin PRIVATE reef_flags m)
endif()

if(REEF_TESTS)
  if(REEF_TESTS STREQUAL AUTO)
    set(reef_need "")
  else()
    set(reef_need REQUIRED)
  endif()
  find_path(CMOCKA_INCLUDE_DIR cmocka.h ${reef_need})
  find_library(CMOCKA_LIBRARY cmocka ${reef_need})
  find_path(JANSSON_INCLUDE_DIR jansson.h ${reef_need})
  find_library(JANSSON_LIBRARY jansson ${reef_need})
  mark_as_advanced(CMOCKA_INCLUDE_DIR CMOCKA_LIBRARY JANSSON_INCLUDE_DIR JANSSON_LIBRARY)
endif()

if(REEF_TESTS AND CMOCKA_LIBRARY AND CMOCKA_INCLUDE_DIR AND JANSSON_LIBRARY AND JANSSON_INCLUDE_DIR)
  file(GLOB reef_support_sources CONFIGURE_DEPENDS tests/support/*.c)
  file(GLOB_RECURSE reef_test_sources CONFIGURE_DEPENDS tests/test_*.c)
  list(FILTER reef_test_sources EXCLUDE REGEX "/tests/mpi/")
  if(reef_net_found)
    # What the tests of the network share: a network in memory.
    file(GLOB reef_net_support_sources CONFIGURE_DEPENDS tests/net/*.c)
    list(FILTER reef_net_support_sources EXCLUDE REGEX "/(test_[^/]*|hostile)\\.c$")
    if(NOT reef_nats_found)
      list(FILTER reef_net_support_sources EXCLUDE REGEX "/tests/net/(server|camp)\\.c$")
      set(reef_absent "no libnats here" "/tests/net/test_(agent|faults|link_nats|hostile|stall|strangers|watch)\\.c$")
    endif()
  else()
    set(reef_absent "no libsodium here" "/tests/net/")
  endif()
  if(reef_absent)
    list(POP_FRONT reef_absent reef_reason reef_pattern)
    foreach(source IN LISTS reef_test_sources)
      if(source MATCHES "${reef_pattern}")
        reef_test_name(${source} name)
        reef_leave_out("${reef_reason}" ${name})
      endif()
    endforeach()
    list(FILTER reef_test_sources EXCLUDE REGEX "${reef_pattern}")
  endif()

  # Everything a test needs; tests may call internal functions, hence src/ and the static library.
  add_library(reef_test_base INTERFACE)
  target_include_directories(reef_test_base INTERFACE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(reef_test_base SYSTEM INTERFACE ${CMOCKA_INCLUDE_DIR} ${JANSSON_INCLUDE_DIR})
  target_compile_definitions(reef_test_base INTERFACE REEF_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                      REEF_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden"
                                                      REEF_BUILD_DIR="${PROJECT_BINARY_DIR}")
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    target_compile_definitions(reef_test_base INTERFACE TEST_EMULATED)
  endif()
  target_link_libraries(reef_test_base INTERFACE reef_static reef_flags ${CMOCKA_LIBRARY} ${JANSSON_LIBRARY} m
                                                 Threads::Threads)
  if(reef_support_sources)
    add_library(reef_test_support STATIC ${reef_support_sources})
    target_link_libraries(reef_test_support PUBLIC reef_test_base)
  else()
    add_library(reef_test_support ALIAS reef_test_base)
  endif()

  if(reef_net_found)
    add_library(reef_net_test_support STATIC ${reef_net_support_sources})
    target_link_libraries(reef_net_test_support PUBLIC reef_net_static reef_test_support)
    if(reef_nats_found)
      target_include_directories(reef_net_test_support SYSTEM PRIVATE ${NATS_INCLUDE_DIR})
      target_link_libraries(reef_net_test_support PRIVATE ${NATS_LIBRARY})
      # A client that does what no agent does, for the tests of the commands.
      add_executable(test_hostile_client tests/net/hostile.c)
      set_target_properties(test_hostile_client PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests OUTPUT_NAME hostile)
      target_link_libraries(test_hostile_client PRIVATE reef_net_test_support)
    endif()
  endif()

  foreach(source IN LISTS reef_test_sources)
    reef_test_name(${source} name)
    string(REPLACE "." "_" target test_${name})
    add_executable(${target} ${source})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    if(name STREQUAL net.faults) # whose own functions take the place of these, in the code of Reef
      foreach(function malloc calloc realloc write pwrite fsync fdatasync rename mkdir open)
        target_link_options(${target} PRIVATE -Wl,--wrap=${function})
      endforeach()
    endif()
    if(name MATCHES "^net\\.")
      target_link_libraries(${target} PRIVATE reef_net_test_support)
    else()
      target_link_libraries(${target} PRIVATE reef_test_support)
    endif()
    reef_add_test(${name} ${target} 1800)
  endforeach()

  # A wall clock that is set while an agent runs (tests/net/clock.bats, scripts/torture_agents.py).
  if(reef_nats_found)
    add_library(test_clock_step MODULE tests/net/preload/clock_step.c)
    set_target_properties(test_clock_step PROPERTIES OUTPUT_NAME clock_step PREFIX "" C_VISIBILITY_PRESET default C_EXTENSIONS ON
                                                     LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(test_clock_step PRIVATE reef_flags ${CMAKE_DL_LIBS} m)
  endif()

  reef_check_thread_tests()

  # Libraries that look like plug-ins and are none, or not of this version, or fail.
  file(GLOB reef_test_plugins CONFIGURE_DEPENDS tests/plugins/*.c)
  foreach(source IN LISTS reef_test_plugins)
    cmake_path(GET source STEM name)
    add_library(test_plugin_${name} MODULE ${source})
    set_target_properties(test_plugin_${name} PROPERTIES OUTPUT_NAME ${name} PREFIX "" C_VISIBILITY_PRESET hidden
                                              LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/plugins)
    target_include_directories(test_plugin_${name} PRIVATE include ${PROJECT_BINARY_DIR}/include)
    target_link_libraries(test_plugin_${name} PRIVATE reef_flags)
    list(APPEND reef_plugin_targets test_plugin_${name})
  endforeach()

  # What the thread tests need, for a build that is for them alone.
  get_property(reef_thread_targets GLOBAL PROPERTY reef_thread_targets)
  add_custom_target(reef_thread_tests DEPENDS ${reef_thread_targets} ${reef_plugin_targets})
  if(REEF_EXAMPLES)
    add_dependencies(reef_thread_tests example_plugin)
  endif()

  # The model of the round protocol has no code of ours in it, so one build of it is enough.
  find_program(SPIN_EXECUTABLE spin)
  mark_as_advanced(SPIN_EXECUTABLE)
  if(reef_net_found AND SPIN_EXECUTABLE AND NOT REEF_SANITIZE)
    add_test(NAME net.model COMMAND ${PROJECT_SOURCE_DIR}/tests/net/model.sh)
    set_tests_properties(net.model PROPERTIES TIMEOUT 900 COST 100)
  elseif(NOT REEF_SANITIZE)
    reef_leave_out("no spin or no libsodium here" net.model)
  endif()
elseif(REEF_TESTS)
  message(STATUS "Unit tests are left out: cmocka or jansson not found")
endif()

if(REEF_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "Fuzz targets need clang: cmake --preset fuzz")
  endif()
  file(GLOB reef_fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  foreach(source IN LISTS reef_fuzz_sources)
    cmake_path(GET source STEM name)
    file(STRINGS ${source} of_net REGEX "include \"net/" LIMIT_COUNT 1)
    file(STRINGS ${source} of_nats REGEX "include \"net/link_nats" LIMIT_COUNT 1)
    if((of_net AND NOT reef_net_found) OR (of_nats AND NOT reef_nats_found))
      continue()
    endif()
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/targets)
    target_include_directories(${name} PRIVATE src)
    # LLVMFuzzerTestOneInput has no header.
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-missing-prototypes)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE $<$<BOOL:${of_net}>:reef_net_static> reef_static reef_flags m Threads::Threads)
  endforeach()
endif()

# What was built, seen as files.
if(CMAKE_SYSTEM_NAME STREQUAL Linux)
  add_test(NAME build.binaries COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_binaries.sh $<$<BOOL:${reef_hardened}>:--hardened>
                                       ${PROJECT_BINARY_DIR} COMMAND_EXPAND_LISTS)
endif()
