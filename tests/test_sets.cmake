# SPDX-License-Identifier: Apache-2.0
# Which tests run in which build, and their labels. A test that is in no
# list runs everywhere and has the label `fast`.

# Tests that start programs thousands of times, or draw millions of times, to
# compare samples with the oracle and distributions with the exact ones. Other
# tests run the same code under the sanitizers.
set(MILLRACE_ORACLE_TESTS
    distribution_test method_distribution_test oracle_compare
    oracle_edges_test oracle_kinds_test oracle_seeds_test oracle_test
    real_graphs_test temporal_epoch_test walk_distribution_test)

# Tests of Python, Bash, CMake, compilers and texts rather than of code that the
# sanitizers see.
set(MILLRACE_TOOL_TESTS
    doc_paths_check_test folder_dependencies_check_test
    grpc_internals_check_test help_test install_test kubernetes_test
    option_names_check_test python_client_test shell_completion_test
    test_entries_test type_names_check_test)

# Tests of limits, with millions of edges and steps. Other tests run the same code
# below these.
set(MILLRACE_LARGE_TESTS
    excluded_edges_test large_requests_test walk_budget_test)

# Tests of the memory, the threads and the time that programs take, of which they
# take more under a sanitizer.
set(MILLRACE_USAGE_TESTS
    plan_test process_metrics_test)

set(MILLRACE_NOT_UNDER_ADDRESS
    ${MILLRACE_ORACLE_TESTS} ${MILLRACE_TOOL_TESTS} ${MILLRACE_LARGE_TESTS}
    ${MILLRACE_USAGE_TESTS})

# Tests that start gRPC or HTTP servers. Debian's gRPC and CivetWeb are not
# instrumented, so ThreadSanitizer does not see how they order memory and reports
# races.
set(MILLRACE_FLEET_TESTS
    added_splits_test bad_draws_test bad_requests_test batch_fetch_test
    cached_batches_test
    call_context_test call_failure_test channel_set_test connections_test
    damaged_replicas_test device_batches_test device_server_test
    fair_clients_test fleet_commands_test fleet_test
    frame_stream_test http_server_test job_flags_test large_requests_test
    long_lists_test member_keeper_test memory_limits_test methods_test
    metrics_of_calls_test
    open_source_test peer_expand_test peer_picker_test port_check_test
    refusals_test remote_batch_source_test reset_calls_test
    sample_command_test seed_lookup_test server_drain_test
    server_program_test server_test set_clock_test slow_clients_test
    slow_replicas_test split_replicas_test status_pages_test
    stopped_server_test tls_test traced_calls_test unary_call_test)

# Tests of code that runs on one thread.
set(MILLRACE_SERIAL_TESTS
    add_split_test address_list_test allowed_names_test array_test
    atomic_directory_test batch_arrays_test batch_assembler_test batch_test
    busy_time_test call_trace_test cast_test certificates_test child_process_test
    completion_test csv_rows_test divide_edges_test draw_test
    edge_directory_test edge_feature_test edge_split_writer_test
    elements_test excluded_edges_test expand_reply_reader_test fake_test
    families_test fetch_trace_test field_words_test file_test
    fleet_status_test float_cast_test frame_source_test frame_test
    gather_columns_test gather_test golden_test graph_checks_test
    hedging_test help_format_test help_test host_port_test ids_test
    import_command_test importer_test induced_test
    inflated_file_test ip_network_test job_identity_test job_options_test
    job_proto_test job_rules_test job_texts_test label_summary_test
    line_reader_test lineage_command_test lineage_test load_store_test
    local_fleet_test manifest_proto_test manifest_test
    man_page_test mapped_neighbor_source_test method_job_test
    metis_partition_test minute_sum_test missing_rows_test negatives_test
    npy_graph_test npy_rows_test npy_test npz_formats_test numbers_test
    ogb_test option_errors_test output_test owner_groups_test
    partition_formats_test partition_test philox_many_test pick_slots_test
    print_config_test program_test progress_test relabel_test
    replica_failure_test request_plan_test resolve_job_test resolve_seeds_test
    restored_rows_test schema_test scraped_test seed_schedule_test
    select_edges_test serve_flags_test split_requests_test status_test
    store_commands_test store_test store_writer_test strings_test
    temporal_test torch_file_test train_graph_test triples_test tu_test
    unpickler_test verify_test walk_budget_test walk_test weights_test
    words_test zip_archive_test)

# Nor does a build for ThreadSanitizer run the tests in Python or Bash, which
# start programs.
set(MILLRACE_NOT_UNDER_THREAD
    ${MILLRACE_ORACLE_TESTS} ${MILLRACE_FLEET_TESTS} ${MILLRACE_SERIAL_TESTS}
    ${MILLRACE_USAGE_TESTS})

# Tests that read the larger graphs of tests/run.sh --data.
set(MILLRACE_DATA_TESTS
    real_graphs_test temporal_epoch_test train_accuracy_test
    train_arxiv_inference_test train_graph_accuracy_test
    train_link_accuracy_test train_tutorial_imdb_test)

# Tests that take more than about ten seconds on two cores. tests/run.sh --fast
# leaves them out; other runs start them first.
set(MILLRACE_SLOW_TESTS
    bad_requests_test chaos_test clock_steps_test collectives_test
    compare_losses_test compressed_import_test connections_test
    damaged_replica_test device_feature_rows_test device_hop_sampler_test
    device_neighbor_drawer_test device_topology_sampler_test examples_test
    failed_calls_test failed_gathers_test failed_programs_test
    golden_cuda_digests_test golden_digests_test golden_pinned_digests_test
    heartbeat_test hop_sampler_test http_server_test install_test kubernetes_test
    launch_test
    link_trainer_test lost_server_test memory_tiers_test mixed_abuse_test npy_import_test oracle_compare
    oracle_edges_test programs_test quickstart_test replicas_test
    slow_replicas_test soak_test status_pages_test test_entries_test
    train_colocated_test train_group_test train_hostile_checkpoint_test
    train_memory_test train_metrics_test
    train_rendezvous_test train_resume_test train_script_test
    train_supervise_test train_torch_load_test trainer_test
    traced_batches_test typed_trainer_test)

# Tests that start many programs, up to hundreds, which takes long under
# AddressSanitizer. They have the label `many-starts`, and run there before a
# release only; other tests run the same code.
set(MILLRACE_MANY_STARTS_TESTS
    added_split_test compressed_import_test golden_digests_test npy_import_test
    partial_copy_test programs_test replicas_test sampling_test secure_fleet_test
    store_edits_test)

# Tests of code that runs on GPUs.
set(MILLRACE_CUDA_TESTS
    cuda_runtime_test device_cache_eager_test device_cache_lazy_test
    device_cache_test device_feature_rows_test
    device_feature_rows_without_peers_test device_hop_sampler_test
    device_layers_eager_test device_layers_lazy_test device_layers_test
    device_neighbor_drawer_test device_topology_sampler_test failed_calls_test
    failed_gathers_test failed_merges_test failed_programs_test
    gather_rates_test golden_cuda_digests_test golden_pinned_digests_test memory_tiers_test
    nccl_failures_test nccl_reducer_test ptxemu_devices_test ptxemu_kernels_test
    ptxemu_nccl_test ptxemu_planted_test)

# Tests whose threads wait for each other all the time. Beside other tests they
# take up to thirty times longer.
set(MILLRACE_ALONE_TESTS
    attention_kernels_test attention_v2_kernels_test hop_sampler_test
    list_filter_test pick_test)

# The factor by which a sanitizer extends the time limits of tests.
set(MILLRACE_TIMEOUT_FACTOR 1)
if(MILLRACE_SANITIZER)
  set(MILLRACE_TIMEOUT_FACTOR 4)
endif()

# Sets `out` to whether the test `name` is left out of this build.
function(millrace_is_left_out out name)
  string(TOUPPER "${MILLRACE_SANITIZER}" sanitizer)
  set(${out} FALSE PARENT_SCOPE)
  if(name IN_LIST MILLRACE_NOT_UNDER_${sanitizer})
    set(${out} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Sets the labels of the test `name`, its place in the order of the tests, and
# its time limit, `seconds` without sanitizers. In a build with ptxemu the test
# finds that as its CUDA runtime.
function(millrace_set_test_limits name seconds)
  set(labels fast)
  set(cost 1)
  if(name IN_LIST MILLRACE_DATA_TESTS)
    set(labels data slow)
    set(cost 100)
  elseif(name IN_LIST MILLRACE_SLOW_TESTS)
    set(labels slow)
    set(cost 100)
  endif()
  if(name IN_LIST MILLRACE_CUDA_TESTS)
    list(APPEND labels cuda)
  endif()
  if(name IN_LIST MILLRACE_MANY_STARTS_TESTS)
    list(APPEND labels many-starts)
  endif()
  if(MILLRACE_PTXEMU_DIR)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION
      LD_LIBRARY_PATH=path_list_prepend:${MILLRACE_PTXEMU_DIR})
  endif()
  if(name IN_LIST MILLRACE_ALONE_TESTS)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  math(EXPR timeout "${seconds} * ${MILLRACE_TIMEOUT_FACTOR}")
  set_tests_properties(${name} PROPERTIES
    LABELS "${labels}" COST ${cost} TIMEOUT ${timeout})
endfunction()
