#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 5 + d1, d2), <1x1>, memref<20x16xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<16x16xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x3xsi32, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, u32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 5 + d1, d2), <1x1>, memref<5x16xf32, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 20 + d1 * 5 + d2, d3), <1x1>, memref<20x16xf32, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<5x16xf32, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 5 + d1 * 5 + d2, d3), <1x1>, memref<5x16xf32, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 128 + d1 * 32 + d2, d3), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_scans attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_scans attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<4x5x16xf32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<4x5x16>}> : (!ttnn.device) -> tensor<4x5x16xf32, #ttnn_layout1>
        return %1 : tensor<4x5x16xf32, #ttnn_layout1>
      }
      func.func private @main_const_eval_2() -> tensor<5x16xf32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<5x16>}> : (!ttnn.device) -> tensor<5x16xf32, #ttnn_layout2>
        return %1 : tensor<5x16xf32, #ttnn_layout2>
      }
      func.func public @main(%arg0: tensor<4x5x16xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x5x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<16x16xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<16x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<5x16xf32, #ttnn_layout2> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<5x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<4x5x16xf32, #ttnn_layout1> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x5x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<si32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<5x16xf32, #ttnn_layout2>
        %2 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<4x5x16xf32, #ttnn_layout1>
        %3 = "ttnn.to_layout"(%arg0) : (tensor<4x5x16xf32, #ttnn_layout3>) -> tensor<4x5x16xf32, #ttnn_layout1>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<4x5x16xf32, #ttnn_layout3>) -> ()
        %4 = "ttnn.to_layout"(%arg1) : (tensor<16x16xf32, #ttnn_layout4>) -> tensor<16x16xf32, #ttnn_layout2>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<16x16xf32, #ttnn_layout4>) -> ()
        %5:3 = "ttcore.while_loop"(%0, %1, %2, %3, %4) <{body_program = @main_counted_loop, initial = #ttcore.loop_bound<0>, limit = #ttcore.loop_bound<4>, output_indices = array<i32: 0, 1, 2>, state_count = 3 : i32, step = #ttcore.loop_bound<1>}> : (tensor<si32, #ttnn_layout>, tensor<5x16xf32, #ttnn_layout2>, tensor<4x5x16xf32, #ttnn_layout1>, tensor<4x5x16xf32, #ttnn_layout1>, tensor<16x16xf32, #ttnn_layout2>) -> (tensor<si32, #ttnn_layout>, tensor<5x16xf32, #ttnn_layout2>, tensor<4x5x16xf32, #ttnn_layout1>)
        "ttnn.deallocate"(%5#0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<16x16xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<4x5x16xf32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<4x5x16xf32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<5x16xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        return %5#1, %5#2 : tensor<5x16xf32, #ttnn_layout2>, tensor<4x5x16xf32, #ttnn_layout1>
      }
      func.func private @main_counted_loop_const_eval_0() -> tensor<1xsi32, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout5>
        return %1 : tensor<1xsi32, #ttnn_layout5>
      }
      func.func private @main_counted_loop_const_eval_1() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func private @main_counted_loop_const_eval_2() -> tensor<3xsi32, #ttnn_layout6> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.constant"(%0) <{value = dense<[1, 5, 16]> : tensor<3xsi32>}> : (!ttnn.device) -> tensor<3xsi32, #ttnn_layout6>
        return %1 : tensor<3xsi32, #ttnn_layout6>
      }
      func.func private @main_counted_loop(%arg0: tensor<si32, #ttnn_layout>, %arg1: tensor<5x16xf32, #ttnn_layout2>, %arg2: tensor<4x5x16xf32, #ttnn_layout1>, %arg3: tensor<4x5x16xf32, #ttnn_layout1>, %arg4: tensor<16x16xf32, #ttnn_layout2>) -> (tensor<si32, #ttnn_layout>, tensor<5x16xf32, #ttnn_layout2>, tensor<4x5x16xf32, #ttnn_layout1>) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_counted_loop_const_eval_0, []) : () -> tensor<1xsi32, #ttnn_layout5>
        %1 = ttcore.load_cached(@main_counted_loop_const_eval_2, []) : () -> tensor<3xsi32, #ttnn_layout6>
        %2 = ttcore.load_cached(@main_counted_loop_const_eval_1, []) : () -> tensor<si32, #ttnn_layout>
        %3 = "ttnn.reshape"(%arg0) <{shape = [1 : i32]}> : (tensor<si32, #ttnn_layout>) -> tensor<1xsi32, #ttnn_layout6>
        %4 = "ttnn.clamp_scalar"(%3) <{max = 3 : i32, min = 0 : i32}> : (tensor<1xsi32, #ttnn_layout6>) -> tensor<1xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1xsi32, #ttnn_layout6>) -> ()
        %5 = "ttnn.to_layout"(%4) : (tensor<1xsi32, #ttnn_layout6>) -> tensor<1xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1xsi32, #ttnn_layout6>) -> ()
        %6 = "ttnn.concat"(%5, %0, %0) <{dim = 0 : si32}> : (tensor<1xsi32, #ttnn_layout5>, tensor<1xsi32, #ttnn_layout5>, tensor<1xsi32, #ttnn_layout5>) -> tensor<3xsi32, #ttnn_layout7>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1xsi32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1xsi32, #ttnn_layout5>) -> ()
        %7 = "ttnn.to_layout"(%6) : (tensor<3xsi32, #ttnn_layout7>) -> tensor<3xsi32, #ttnn_layout6>
        %8 = "ttnn.add"(%7, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<3xsi32, #ttnn_layout6>, tensor<3xsi32, #ttnn_layout6>) -> tensor<3xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<3xsi32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<3xsi32, #ttnn_layout6>) -> ()
        %9 = "ttnn.to_layout"(%arg3) : (tensor<4x5x16xf32, #ttnn_layout1>) -> tensor<4x5x16xf32, #ttnn_layout3>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<4x5x16xf32, #ttnn_layout1>) -> ()
        %10 = "ttnn.to_layout"(%6) : (tensor<3xsi32, #ttnn_layout7>) -> tensor<3xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<3xsi32, #ttnn_layout7>) -> ()
        %11 = "ttnn.typecast"(%10) : (tensor<3xsi32, #ttnn_layout6>) -> tensor<3xui32, #ttnn_layout8>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<3xsi32, #ttnn_layout6>) -> ()
        %12 = "ttnn.typecast"(%8) : (tensor<3xsi32, #ttnn_layout6>) -> tensor<3xui32, #ttnn_layout8>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<3xsi32, #ttnn_layout6>) -> ()
        %13 = "ttnn.slice_dynamic"(%9, %11, %12) : (tensor<4x5x16xf32, #ttnn_layout3>, tensor<3xui32, #ttnn_layout8>, tensor<3xui32, #ttnn_layout8>) -> tensor<1x5x16xf32, #ttnn_layout9>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<3xui32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<3xui32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<4x5x16xf32, #ttnn_layout3>) -> ()
        %14 = "ttnn.to_layout"(%13) : (tensor<1x5x16xf32, #ttnn_layout9>) -> tensor<1x5x16xf32, #ttnn_layout10>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1x5x16xf32, #ttnn_layout9>) -> ()
        %15 = "ttnn.matmul"(%arg1, %arg4) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<5x16xf32, #ttnn_layout2>, tensor<16x16xf32, #ttnn_layout2>) -> tensor<5x16xf32, #ttnn_layout2>
        "ttnn.deallocate"(%arg4) <{force = false}> : (tensor<16x16xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<5x16xf32, #ttnn_layout2>) -> ()
        %16 = "ttnn.add"(%15, %14) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<5x16xf32, #ttnn_layout2>, tensor<1x5x16xf32, #ttnn_layout10>) -> tensor<1x5x16xf32, #ttnn_layout10>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<5x16xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<1x5x16xf32, #ttnn_layout10>) -> ()
        %17 = "ttnn.reshape"(%16) <{shape = [5 : i32, 16 : i32]}> : (tensor<1x5x16xf32, #ttnn_layout10>) -> tensor<5x16xf32, #ttnn_layout2>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<1x5x16xf32, #ttnn_layout10>) -> ()
        %18 = "ttnn.tanh"(%17) : (tensor<5x16xf32, #ttnn_layout2>) -> tensor<5x16xf32, #ttnn_layout2>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<5x16xf32, #ttnn_layout2>) -> ()
        %19 = "ttnn.reshape"(%arg0) <{shape = [1 : i32, 1 : i32]}> : (tensor<si32, #ttnn_layout>) -> tensor<1x1xsi32, #ttnn_layout11>
        %20 = "ttnn.clamp_scalar"(%19) <{max = 3 : i32, min = 0 : i32}> : (tensor<1x1xsi32, #ttnn_layout11>) -> tensor<1x1xsi32, #ttnn_layout11>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout11>) -> ()
        %21 = "ttnn.to_layout"(%20) : (tensor<1x1xsi32, #ttnn_layout11>) -> tensor<1x1xsi32, #ttnn_layout12>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout11>) -> ()
        %22 = "ttnn.reshape"(%21) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<1x1xsi32, #ttnn_layout12>) -> tensor<1x1x1xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout12>) -> ()
        %23 = "ttnn.to_layout"(%arg2) : (tensor<4x5x16xf32, #ttnn_layout1>) -> tensor<4x5x16xf32, #ttnn_layout3>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<4x5x16xf32, #ttnn_layout1>) -> ()
        %24 = "ttnn.reshape"(%23) <{shape = [1 : i32, 4 : i32, 5 : i32, 16 : i32]}> : (tensor<4x5x16xf32, #ttnn_layout3>) -> tensor<1x4x5x16xf32, #ttnn_layout14>
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<4x5x16xf32, #ttnn_layout3>) -> ()
        %25 = "ttnn.to_layout"(%18) : (tensor<5x16xf32, #ttnn_layout2>) -> tensor<5x16xf32, #ttnn_layout15>
        %26 = "ttnn.reshape"(%25) <{shape = [1 : i32, 1 : i32, 5 : i32, 16 : i32]}> : (tensor<5x16xf32, #ttnn_layout15>) -> tensor<1x1x5x16xf32, #ttnn_layout16>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<5x16xf32, #ttnn_layout15>) -> ()
        %27 = "ttnn.rows_scatter"(%24, %22, %26) <{column = false, reduce = #ttcore.reduce_type<invalid>, sizes = array<i64: 4>, windows = array<i64: 1>}> : (tensor<1x4x5x16xf32, #ttnn_layout14>, tensor<1x1x1xsi32, #ttnn_layout13>, tensor<1x1x5x16xf32, #ttnn_layout16>) -> tensor<1x4x5x16xf32, #ttnn_layout14>
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<1x1x5x16xf32, #ttnn_layout16>) -> ()
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<1x4x5x16xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<1x1x1xsi32, #ttnn_layout13>) -> ()
        %28 = "ttnn.to_layout"(%27) : (tensor<1x4x5x16xf32, #ttnn_layout14>) -> tensor<1x4x5x16xf32, #ttnn_layout17>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<1x4x5x16xf32, #ttnn_layout14>) -> ()
        %29 = "ttnn.reshape"(%28) <{shape = [4 : i32, 5 : i32, 16 : i32]}> : (tensor<1x4x5x16xf32, #ttnn_layout17>) -> tensor<4x5x16xf32, #ttnn_layout1>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<1x4x5x16xf32, #ttnn_layout17>) -> ()
        %30 = "ttnn.add"(%arg0, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        return %30, %18, %29 : tensor<si32, #ttnn_layout>, tensor<5x16xf32, #ttnn_layout2>, tensor<4x5x16xf32, #ttnn_layout1>
      }
    }
  }
}
