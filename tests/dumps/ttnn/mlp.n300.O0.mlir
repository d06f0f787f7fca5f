#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<359x32xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x64xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x128xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<128x5xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x10xf32, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x64xf32, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x5xf32, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x10xf32, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 384 + d1 * 384 + d2, d3), <1x1>, memref<12x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x5xf32, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x12x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x12x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_mlp attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  ttcore.device_module {
    builtin.module @jit_mlp attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0xFF800000 : f32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xf32, #ttnn_layout>
        return %1 : tensor<1xf32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<359x32xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<359x32xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg1: tensor<64x64xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x64xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg2: tensor<128xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg3: tensor<128x5xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128x5xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg4: tensor<10xf32, #ttnn_layout5> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<10xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<359x5xf32, #ttnn_layout6> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<359x5xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1xf32, #ttnn_layout>
        %1 = "ttnn.to_layout"(%arg0) : (tensor<359x32xf32, #ttnn_layout1>) -> tensor<359x32xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<359x32xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.all_gather"(%1) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}> : (tensor<359x32xf32, #ttnn_layout6>) -> tensor<359x64xf32, #ttnn_layout7>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<359x32xf32, #ttnn_layout6>) -> ()
        %3 = "ttnn.mesh_partition"(%arg2) <{cluster_axis = 1 : ui32, dim = 0 : si32}> : (tensor<128xf32, #ttnn_layout3>) -> tensor<64xf32, #ttnn_layout8>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<128xf32, #ttnn_layout3>) -> ()
        %4 = "ttnn.to_layout"(%arg1) : (tensor<64x64xf32, #ttnn_layout2>) -> tensor<64x64xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<64x64xf32, #ttnn_layout2>) -> ()
        %5 = "ttnn.to_layout"(%3) : (tensor<64xf32, #ttnn_layout8>) -> tensor<64xf32, #ttnn_layout10>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<64xf32, #ttnn_layout8>) -> ()
        %6 = "ttnn.linear"(%2, %4, %5) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 2, out_subblock_w = 1, out_block_h = 2, out_block_w = 1, per_core_m = 2, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<359x64xf32, #ttnn_layout7>, tensor<64x64xf32, #ttnn_layout9>, tensor<64xf32, #ttnn_layout10>) -> tensor<359x64xf32, #ttnn_layout7>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<64xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<64x64xf32, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<359x64xf32, #ttnn_layout7>) -> ()
        %7 = "ttnn.relu"(%6) : (tensor<359x64xf32, #ttnn_layout7>) -> tensor<359x64xf32, #ttnn_layout7>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<359x64xf32, #ttnn_layout7>) -> ()
        %8 = "ttnn.to_layout"(%arg3) : (tensor<128x5xf32, #ttnn_layout4>) -> tensor<128x5xf32, #ttnn_layout11>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<128x5xf32, #ttnn_layout4>) -> ()
        %9 = "ttnn.slice_static"(%8) <{begins = [0 : i32, 0 : i32], ends = [64 : i32, 5 : i32], step = [1 : i32, 1 : i32]}> : (tensor<128x5xf32, #ttnn_layout11>) -> tensor<64x5xf32, #ttnn_layout12>
        %10 = "ttnn.slice_static"(%8) <{begins = [64 : i32, 0 : i32], ends = [128 : i32, 5 : i32], step = [1 : i32, 1 : i32]}> : (tensor<128x5xf32, #ttnn_layout11>) -> tensor<64x5xf32, #ttnn_layout12>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<128x5xf32, #ttnn_layout11>) -> ()
        %11 = "ttnn.assign"(%9) : (tensor<64x5xf32, #ttnn_layout12>) -> tensor<64x5xf32, #ttnn_layout12>
        %12 = "ttnn.assign"(%10) : (tensor<64x5xf32, #ttnn_layout12>) -> tensor<64x5xf32, #ttnn_layout12>
        %13 = "ttnn.point_to_point"(%10, %11) <{receiver_coord = array<i64: 0, 1>, sender_coord = array<i64: 0, 0>}> : (tensor<64x5xf32, #ttnn_layout12>, tensor<64x5xf32, #ttnn_layout12>) -> tensor<64x5xf32, #ttnn_layout12>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<64x5xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<64x5xf32, #ttnn_layout12>) -> ()
        %14 = "ttnn.point_to_point"(%9, %12) <{receiver_coord = array<i64: 0, 0>, sender_coord = array<i64: 0, 1>}> : (tensor<64x5xf32, #ttnn_layout12>, tensor<64x5xf32, #ttnn_layout12>) -> tensor<64x5xf32, #ttnn_layout12>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<64x5xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<64x5xf32, #ttnn_layout12>) -> ()
        %15 = "ttnn.to_layout"(%13) : (tensor<64x5xf32, #ttnn_layout12>) -> tensor<64x5xf32, #ttnn_layout13>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<64x5xf32, #ttnn_layout12>) -> ()
        %16 = "ttnn.to_layout"(%14) : (tensor<64x5xf32, #ttnn_layout12>) -> tensor<64x5xf32, #ttnn_layout13>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<64x5xf32, #ttnn_layout12>) -> ()
        %17 = "ttnn.concat"(%15, %16) <{dim = 1 : si32}> : (tensor<64x5xf32, #ttnn_layout13>, tensor<64x5xf32, #ttnn_layout13>) -> tensor<64x10xf32, #ttnn_layout14>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<64x5xf32, #ttnn_layout13>) -> ()
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<64x5xf32, #ttnn_layout13>) -> ()
        %18 = "ttnn.to_layout"(%17) : (tensor<64x10xf32, #ttnn_layout14>) -> tensor<64x10xf32, #ttnn_layout12>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<64x10xf32, #ttnn_layout14>) -> ()
        %19 = "ttnn.matmul"(%7, %18) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<359x64xf32, #ttnn_layout7>, tensor<64x10xf32, #ttnn_layout12>) -> tensor<359x10xf32, #ttnn_layout6>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<64x10xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<359x64xf32, #ttnn_layout7>) -> ()
        %20 = "ttnn.reshape"(%19) <{shape = [1 : i32, 1 : i32, 359 : i32, 10 : i32]}> : (tensor<359x10xf32, #ttnn_layout6>) -> tensor<1x1x359x10xf32, #ttnn_layout15>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<359x10xf32, #ttnn_layout6>) -> ()
        %21 = "ttnn.reduce_scatter"(%20) <{cluster_axis = 1 : ui32, compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true, packer_l1_acc = false>, reduce_type = #ttcore.reduce_type<sum>, scatter_dim = 3 : si32}> : (tensor<1x1x359x10xf32, #ttnn_layout15>) -> tensor<1x1x359x5xf32, #ttnn_layout15>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<1x1x359x10xf32, #ttnn_layout15>) -> ()
        %22 = "ttnn.reshape"(%21) <{shape = [359 : i32, 5 : i32]}> : (tensor<1x1x359x5xf32, #ttnn_layout15>) -> tensor<359x5xf32, #ttnn_layout6>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<1x1x359x5xf32, #ttnn_layout15>) -> ()
        %23 = "ttnn.mesh_partition"(%arg4) <{cluster_axis = 1 : ui32, dim = 0 : si32}> : (tensor<10xf32, #ttnn_layout5>) -> tensor<5xf32, #ttnn_layout16>
        "ttnn.deallocate"(%arg4) <{force = false}> : (tensor<10xf32, #ttnn_layout5>) -> ()
        %24 = "ttnn.to_layout"(%23) : (tensor<5xf32, #ttnn_layout16>) -> tensor<5xf32, #ttnn_layout>
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<5xf32, #ttnn_layout16>) -> ()
        %25 = "ttnn.reshape"(%24) <{shape = [1 : i32, 5 : i32]}> : (tensor<5xf32, #ttnn_layout>) -> tensor<1x5xf32, #ttnn_layout17>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<5xf32, #ttnn_layout>) -> ()
        %26 = "ttnn.add"(%22, %25) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<359x5xf32, #ttnn_layout6>, tensor<1x5xf32, #ttnn_layout17>) -> tensor<359x5xf32, #ttnn_layout6>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<1x5xf32, #ttnn_layout17>) -> ()
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<359x5xf32, #ttnn_layout6>) -> ()
        %27 = "ttnn.max"(%26) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<359x5xf32, #ttnn_layout6>) -> tensor<359xf32, #ttnn_layout18>
        %28 = "ttnn.reshape"(%27) <{shape = [1 : i32, 1 : i32, 1 : i32, 359 : i32]}> : (tensor<359xf32, #ttnn_layout18>) -> tensor<1x1x1x359xf32, #ttnn_layout19>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<359xf32, #ttnn_layout18>) -> ()
        %29 = "ttnn.all_reduce"(%28) <{cluster_axis = 1 : ui32, reduce_type = #ttcore.reduce_type<max>}> : (tensor<1x1x1x359xf32, #ttnn_layout19>) -> tensor<1x1x1x359xf32, #ttnn_layout19>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<1x1x1x359xf32, #ttnn_layout19>) -> ()
        %30 = "ttnn.reshape"(%29) <{shape = [359 : i32]}> : (tensor<1x1x1x359xf32, #ttnn_layout19>) -> tensor<359xf32, #ttnn_layout18>
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<1x1x1x359xf32, #ttnn_layout19>) -> ()
        %31 = "ttnn.maximum"(%0, %30) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xf32, #ttnn_layout>, tensor<359xf32, #ttnn_layout18>) -> tensor<359xf32, #ttnn_layout18>
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<359xf32, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1xf32, #ttnn_layout>) -> ()
        %32 = "ttnn.reshape"(%31) <{shape = [359 : i32, 1 : i32]}> : (tensor<359xf32, #ttnn_layout18>) -> tensor<359x1xf32, #ttnn_layout6>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<359xf32, #ttnn_layout18>) -> ()
        %33 = "ttnn.subtract"(%26, %32) <{activations = [#ttnn.unary_with_param<op_type = exp>], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<359x5xf32, #ttnn_layout6>, tensor<359x1xf32, #ttnn_layout6>) -> tensor<359x5xf32, #ttnn_layout6>
        "ttnn.deallocate"(%32) <{force = false}> : (tensor<359x1xf32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<359x5xf32, #ttnn_layout6>) -> ()
        %34 = "ttnn.sum"(%33) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<359x5xf32, #ttnn_layout6>) -> tensor<359xf32, #ttnn_layout18>
        %35 = "ttnn.reshape"(%34) <{shape = [1 : i32, 1 : i32, 1 : i32, 359 : i32]}> : (tensor<359xf32, #ttnn_layout18>) -> tensor<1x1x1x359xf32, #ttnn_layout19>
        "ttnn.deallocate"(%34) <{force = false}> : (tensor<359xf32, #ttnn_layout18>) -> ()
        %36 = "ttnn.all_reduce"(%35) <{cluster_axis = 1 : ui32, reduce_type = #ttcore.reduce_type<sum>}> : (tensor<1x1x1x359xf32, #ttnn_layout19>) -> tensor<1x1x1x359xf32, #ttnn_layout19>
        "ttnn.deallocate"(%35) <{force = false}> : (tensor<1x1x1x359xf32, #ttnn_layout19>) -> ()
        %37 = "ttnn.reshape"(%36) <{shape = [359 : i32, 1 : i32]}> : (tensor<1x1x1x359xf32, #ttnn_layout19>) -> tensor<359x1xf32, #ttnn_layout6>
        "ttnn.deallocate"(%36) <{force = false}> : (tensor<1x1x1x359xf32, #ttnn_layout19>) -> ()
        %38 = "ttnn.divide"(%33, %37) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<359x5xf32, #ttnn_layout6>, tensor<359x1xf32, #ttnn_layout6>) -> tensor<359x5xf32, #ttnn_layout6>
        "ttnn.deallocate"(%37) <{force = false}> : (tensor<359x1xf32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<359x5xf32, #ttnn_layout6>) -> ()
        return %38 : tensor<359x5xf32, #ttnn_layout6>
      }
    }
  }
}
