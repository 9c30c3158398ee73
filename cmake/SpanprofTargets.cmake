# How every target of the tree is made: one function for a library, one for a test, one for a fuzzer.

set(SPANPROF_WARNINGS
    -Wall -Wextra -Wshadow -Wcast-align -Wunused -Werror
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
    $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)
if(SPANPROF_SANITIZER STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++'s thread sanitizer does not model fences; the protocols that use them are proved in models/.
  list(APPEND SPANPROF_WARNINGS -Wno-tsan)
endif()

if(SPANPROF_SANITIZER)
  add_compile_options(-fsanitize=${SPANPROF_SANITIZER} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SPANPROF_SANITIZER})
endif()
if(SPANPROF_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# spanprof_library(NAME SOURCES file... [LIBRARIES target...])
# A static library of one folder, included as "folder/header.h".
function(spanprof_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${name} PRIVATE ${SPANPROF_WARNINGS})
  target_link_libraries(${name} PUBLIC ${ARG_LIBRARIES})
endfunction()

# spanprof_test(NAME SOURCES file... [LIBRARIES target...] [LABELS label...])
# Every test case is a process of its own: the library under test has process-wide state.
function(spanprof_test name)
  if(NOT SPANPROF_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                             ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${SPANPROF_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} spanprof_gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}/"
                       PROPERTIES TIMEOUT 300 LABELS "${ARG_LABELS}")
endfunction()

if(SPANPROF_BUILD_FUZZERS)
  add_custom_target(fuzzers)
endif()

# spanprof_fuzzer(NAME SOURCES file... [LIBRARIES target...])
function(spanprof_fuzzer name)
  if(NOT SPANPROF_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE ${SPANPROF_WARNINGS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)
  add_dependencies(fuzzers ${name})
endfunction()
