#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 50 + d1, d2), <1x1>, memref<100x96xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x96xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<96x96xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<96x384xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<384x96xf32, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <1x1>, memref<4x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <4x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (0,3)>]>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <4x3>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (2,3)>]>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x3>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <width_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (2,0)>]>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x3>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <width_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (2,0)>]>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <4x3>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (2,3)>]>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1600 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 128 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <1x1>, memref<16x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout20 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <16x1>, memref<1x2x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (4,1)>]>>
#ttnn_layout21 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <1x1>, memref<16x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout22 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout23 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x12x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout24 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <4x6>, memref<1x2x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (5,3)>]>>
#ttnn_layout25 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <4x6>, memref<1x2x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (5,3)>]>>
#ttnn_layout26 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_block attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_block attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1x1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 4.89897966 : f32, shape = #ttnn.shape<1x1x1x1>}> : (!ttnn.device) -> tensor<1x1x1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1x1x1xf32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<2x50x96xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x50x96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<96xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<96xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg3: tensor<96x96xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96x96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg4: tensor<96x96xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96x96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg5: tensor<96x96xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96x96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg6: tensor<96x96xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96x96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg7: tensor<96xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg8: tensor<96xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg9: tensor<96x384xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<96x384xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg10: tensor<384x96xf32, #ttnn_layout5> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<384x96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<2x50x96xf32, #ttnn_layout6> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x50x96xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1x1x1xf32, #ttnn_layout>
        %1 = "ttnn.to_layout"(%arg0) : (tensor<2x50x96xf32, #ttnn_layout1>) -> tensor<2x50x96xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.mean"(%1) <{dim_arg = [2 : i32], keep_dim = true}> : (tensor<2x50x96xf32, #ttnn_layout6>) -> tensor<2x50x1xf32, #ttnn_layout7>
        %3 = "ttnn.to_memory_config"(%1) : (tensor<2x50x96xf32, #ttnn_layout6>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout6>) -> ()
        %4 = "ttnn.subtract"(%3, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x50x96xf32, #ttnn_layout8>, tensor<2x50x1xf32, #ttnn_layout7>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<2x50x1xf32, #ttnn_layout7>) -> ()
        %5 = "ttnn.to_layout"(%arg1) : (tensor<96xf32, #ttnn_layout2>) -> tensor<96xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<96xf32, #ttnn_layout2>) -> ()
        %6 = "ttnn.to_memory_config"(%5) : (tensor<96xf32, #ttnn_layout9>) -> tensor<96xf32, #ttnn_layout10>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<96xf32, #ttnn_layout9>) -> ()
        %7 = "ttnn.rms_norm"(%4, %6) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true, packer_l1_acc = true>, epsilon = 9.99999974E-6 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<2x50x96xf32, #ttnn_layout8>, tensor<96xf32, #ttnn_layout10>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<96xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        %8 = "ttnn.to_layout"(%arg2) : (tensor<96xf32, #ttnn_layout2>) -> tensor<96xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<96xf32, #ttnn_layout2>) -> ()
        %9 = "ttnn.reshape"(%8) <{shape = [1 : i32, 1 : i32, 96 : i32]}> : (tensor<96xf32, #ttnn_layout9>) -> tensor<1x1x96xf32, #ttnn_layout11>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<96xf32, #ttnn_layout9>) -> ()
        %10 = "ttnn.to_memory_config"(%9) : (tensor<1x1x96xf32, #ttnn_layout11>) -> tensor<1x1x96xf32, #ttnn_layout12>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<1x1x96xf32, #ttnn_layout11>) -> ()
        %11 = "ttnn.add"(%7, %10) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x50x96xf32, #ttnn_layout8>, tensor<1x1x96xf32, #ttnn_layout12>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x1x96xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        %12 = "ttnn.reshape"(%11) <{shape = [100 : i32, 96 : i32]}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> tensor<100x96xf32, #ttnn_layout13>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        %13 = "ttnn.to_layout"(%arg3) : (tensor<96x96xf32, #ttnn_layout3>) -> tensor<96x96xf32, #ttnn_layout14>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<96x96xf32, #ttnn_layout3>) -> ()
        %14 = "ttnn.matmul"(%12, %13) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<3, 4>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<100x96xf32, #ttnn_layout13>, tensor<96x96xf32, #ttnn_layout14>) -> tensor<100x96xf32, #ttnn_layout15>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<96x96xf32, #ttnn_layout14>) -> ()
        %15 = "ttnn.reshape"(%14) <{shape = [2 : i32, 50 : i32, 4 : i32, 24 : i32]}> : (tensor<100x96xf32, #ttnn_layout15>) -> tensor<2x50x4x24xf32, #ttnn_layout16>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<100x96xf32, #ttnn_layout15>) -> ()
        %16 = "ttnn.permute"(%15) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x50x4x24xf32, #ttnn_layout16>) -> tensor<2x4x50x24xf32, #ttnn_layout17>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<2x50x4x24xf32, #ttnn_layout16>) -> ()
        %17 = "ttnn.to_layout"(%arg4) : (tensor<96x96xf32, #ttnn_layout3>) -> tensor<96x96xf32, #ttnn_layout14>
        "ttnn.deallocate"(%arg4) <{force = false}> : (tensor<96x96xf32, #ttnn_layout3>) -> ()
        %18 = "ttnn.matmul"(%12, %17) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<3, 4>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<100x96xf32, #ttnn_layout13>, tensor<96x96xf32, #ttnn_layout14>) -> tensor<100x96xf32, #ttnn_layout15>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<96x96xf32, #ttnn_layout14>) -> ()
        %19 = "ttnn.reshape"(%18) <{shape = [2 : i32, 50 : i32, 4 : i32, 24 : i32]}> : (tensor<100x96xf32, #ttnn_layout15>) -> tensor<2x50x4x24xf32, #ttnn_layout16>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<100x96xf32, #ttnn_layout15>) -> ()
        %20 = "ttnn.to_layout"(%arg5) : (tensor<96x96xf32, #ttnn_layout3>) -> tensor<96x96xf32, #ttnn_layout14>
        "ttnn.deallocate"(%arg5) <{force = false}> : (tensor<96x96xf32, #ttnn_layout3>) -> ()
        %21 = "ttnn.matmul"(%12, %20) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<3, 4>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<100x96xf32, #ttnn_layout13>, tensor<96x96xf32, #ttnn_layout14>) -> tensor<100x96xf32, #ttnn_layout15>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<96x96xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<100x96xf32, #ttnn_layout13>) -> ()
        %22 = "ttnn.reshape"(%21) <{shape = [2 : i32, 50 : i32, 4 : i32, 24 : i32]}> : (tensor<100x96xf32, #ttnn_layout15>) -> tensor<2x50x4x24xf32, #ttnn_layout16>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<100x96xf32, #ttnn_layout15>) -> ()
        %23 = "ttnn.permute"(%22) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x50x4x24xf32, #ttnn_layout16>) -> tensor<2x4x50x24xf32, #ttnn_layout17>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<2x50x4x24xf32, #ttnn_layout16>) -> ()
        %24 = "ttnn.permute"(%19) <{permutation = array<i64: 0, 2, 3, 1>}> : (tensor<2x50x4x24xf32, #ttnn_layout16>) -> tensor<2x4x24x50xf32, #ttnn_layout18>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<2x50x4x24xf32, #ttnn_layout16>) -> ()
        %25 = "ttnn.matmul"(%16, %24) <{transpose_a = false, transpose_b = false}> : (tensor<2x4x50x24xf32, #ttnn_layout17>, tensor<2x4x24x50xf32, #ttnn_layout18>) -> tensor<2x4x50x50xf32, #ttnn_layout19>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<2x4x24x50xf32, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<2x4x50x24xf32, #ttnn_layout17>) -> ()
        %26 = "ttnn.to_memory_config"(%25) : (tensor<2x4x50x50xf32, #ttnn_layout19>) -> tensor<2x4x50x50xf32, #ttnn_layout20>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<2x4x50x50xf32, #ttnn_layout19>) -> ()
        %27 = "ttnn.divide"(%26, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x4x50x50xf32, #ttnn_layout20>, tensor<1x1x1x1xf32, #ttnn_layout>) -> tensor<2x4x50x50xf32, #ttnn_layout20>
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<2x4x50x50xf32, #ttnn_layout20>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1x1x1xf32, #ttnn_layout>) -> ()
        %28 = "ttnn.softmax"(%27) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true>, dimension = 3 : si32, numericStable = true}> : (tensor<2x4x50x50xf32, #ttnn_layout20>) -> tensor<2x4x50x50xf32, #ttnn_layout20>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<2x4x50x50xf32, #ttnn_layout20>) -> ()
        %29 = "ttnn.matmul"(%28, %23) <{transpose_a = false, transpose_b = false}> : (tensor<2x4x50x50xf32, #ttnn_layout20>, tensor<2x4x50x24xf32, #ttnn_layout17>) -> tensor<2x4x50x24xf32, #ttnn_layout21>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<2x4x50x50xf32, #ttnn_layout20>) -> ()
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<2x4x50x24xf32, #ttnn_layout17>) -> ()
        %30 = "ttnn.permute"(%29) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x50x24xf32, #ttnn_layout21>) -> tensor<2x50x4x24xf32, #ttnn_layout16>
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<2x4x50x24xf32, #ttnn_layout21>) -> ()
        %31 = "ttnn.reshape"(%30) <{shape = [100 : i32, 96 : i32]}> : (tensor<2x50x4x24xf32, #ttnn_layout16>) -> tensor<100x96xf32, #ttnn_layout13>
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<2x50x4x24xf32, #ttnn_layout16>) -> ()
        %32 = "ttnn.to_layout"(%arg6) : (tensor<96x96xf32, #ttnn_layout3>) -> tensor<96x96xf32, #ttnn_layout14>
        "ttnn.deallocate"(%arg6) <{force = false}> : (tensor<96x96xf32, #ttnn_layout3>) -> ()
        %33 = "ttnn.matmul"(%31, %32) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<3, 4>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<100x96xf32, #ttnn_layout13>, tensor<96x96xf32, #ttnn_layout14>) -> tensor<100x96xf32, #ttnn_layout15>
        "ttnn.deallocate"(%32) <{force = false}> : (tensor<96x96xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<100x96xf32, #ttnn_layout13>) -> ()
        %34 = "ttnn.reshape"(%33) <{shape = [2 : i32, 50 : i32, 96 : i32]}> : (tensor<100x96xf32, #ttnn_layout15>) -> tensor<2x50x96xf32, #ttnn_layout22>
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<100x96xf32, #ttnn_layout15>) -> ()
        %35 = "ttnn.to_memory_config"(%34) : (tensor<2x50x96xf32, #ttnn_layout22>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%34) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout22>) -> ()
        %36 = "ttnn.add"(%3, %35) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x50x96xf32, #ttnn_layout8>, tensor<2x50x96xf32, #ttnn_layout8>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%35) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        %37 = "ttnn.to_memory_config"(%36) : (tensor<2x50x96xf32, #ttnn_layout8>) -> tensor<2x50x96xf32, #ttnn_layout22>
        %38 = "ttnn.mean"(%37) <{dim_arg = [2 : i32], keep_dim = true}> : (tensor<2x50x96xf32, #ttnn_layout22>) -> tensor<2x50x1xf32, #ttnn_layout7>
        "ttnn.deallocate"(%37) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout22>) -> ()
        %39 = "ttnn.subtract"(%36, %38) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x50x96xf32, #ttnn_layout8>, tensor<2x50x1xf32, #ttnn_layout7>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%38) <{force = false}> : (tensor<2x50x1xf32, #ttnn_layout7>) -> ()
        %40 = "ttnn.to_layout"(%arg7) : (tensor<96xf32, #ttnn_layout2>) -> tensor<96xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg7) <{force = false}> : (tensor<96xf32, #ttnn_layout2>) -> ()
        %41 = "ttnn.to_memory_config"(%40) : (tensor<96xf32, #ttnn_layout9>) -> tensor<96xf32, #ttnn_layout10>
        "ttnn.deallocate"(%40) <{force = false}> : (tensor<96xf32, #ttnn_layout9>) -> ()
        %42 = "ttnn.rms_norm"(%39, %41) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true, packer_l1_acc = true>, epsilon = 9.99999974E-6 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<2x50x96xf32, #ttnn_layout8>, tensor<96xf32, #ttnn_layout10>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%41) <{force = false}> : (tensor<96xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%39) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        %43 = "ttnn.to_layout"(%arg8) : (tensor<96xf32, #ttnn_layout2>) -> tensor<96xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg8) <{force = false}> : (tensor<96xf32, #ttnn_layout2>) -> ()
        %44 = "ttnn.reshape"(%43) <{shape = [1 : i32, 1 : i32, 96 : i32]}> : (tensor<96xf32, #ttnn_layout9>) -> tensor<1x1x96xf32, #ttnn_layout11>
        "ttnn.deallocate"(%43) <{force = false}> : (tensor<96xf32, #ttnn_layout9>) -> ()
        %45 = "ttnn.to_memory_config"(%44) : (tensor<1x1x96xf32, #ttnn_layout11>) -> tensor<1x1x96xf32, #ttnn_layout12>
        "ttnn.deallocate"(%44) <{force = false}> : (tensor<1x1x96xf32, #ttnn_layout11>) -> ()
        %46 = "ttnn.add"(%42, %45) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x50x96xf32, #ttnn_layout8>, tensor<1x1x96xf32, #ttnn_layout12>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%45) <{force = false}> : (tensor<1x1x96xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%42) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        %47 = "ttnn.reshape"(%46) <{shape = [100 : i32, 96 : i32]}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> tensor<100x96xf32, #ttnn_layout13>
        "ttnn.deallocate"(%46) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        %48 = "ttnn.to_layout"(%arg9) : (tensor<96x384xf32, #ttnn_layout4>) -> tensor<96x384xf32, #ttnn_layout23>
        "ttnn.deallocate"(%arg9) <{force = false}> : (tensor<96x384xf32, #ttnn_layout4>) -> ()
        %49 = "ttnn.matmul"(%47, %48) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<6, 4>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 2, out_block_h = 1, out_block_w = 2, per_core_m = 1, per_core_n = 2, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<100x96xf32, #ttnn_layout13>, tensor<96x384xf32, #ttnn_layout23>) -> tensor<100x384xf32, #ttnn_layout24>
        "ttnn.deallocate"(%48) <{force = false}> : (tensor<96x384xf32, #ttnn_layout23>) -> ()
        "ttnn.deallocate"(%47) <{force = false}> : (tensor<100x96xf32, #ttnn_layout13>) -> ()
        %50 = "ttnn.reshape"(%49) <{shape = [2 : i32, 50 : i32, 384 : i32]}> : (tensor<100x384xf32, #ttnn_layout24>) -> tensor<2x50x384xf32, #ttnn_layout22>
        "ttnn.deallocate"(%49) <{force = false}> : (tensor<100x384xf32, #ttnn_layout24>) -> ()
        %51 = "ttnn.gelu"(%50) : (tensor<2x50x384xf32, #ttnn_layout22>) -> tensor<2x50x384xf32, #ttnn_layout25>
        "ttnn.deallocate"(%50) <{force = false}> : (tensor<2x50x384xf32, #ttnn_layout22>) -> ()
        %52 = "ttnn.reshape"(%51) <{shape = [100 : i32, 384 : i32]}> : (tensor<2x50x384xf32, #ttnn_layout25>) -> tensor<100x384xf32, #ttnn_layout13>
        "ttnn.deallocate"(%51) <{force = false}> : (tensor<2x50x384xf32, #ttnn_layout25>) -> ()
        %53 = "ttnn.to_layout"(%arg10) : (tensor<384x96xf32, #ttnn_layout5>) -> tensor<384x96xf32, #ttnn_layout26>
        "ttnn.deallocate"(%arg10) <{force = false}> : (tensor<384x96xf32, #ttnn_layout5>) -> ()
        %54 = "ttnn.matmul"(%52, %53) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<3, 4>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<100x384xf32, #ttnn_layout13>, tensor<384x96xf32, #ttnn_layout26>) -> tensor<100x96xf32, #ttnn_layout15>
        "ttnn.deallocate"(%53) <{force = false}> : (tensor<384x96xf32, #ttnn_layout26>) -> ()
        "ttnn.deallocate"(%52) <{force = false}> : (tensor<100x384xf32, #ttnn_layout13>) -> ()
        %55 = "ttnn.reshape"(%54) <{shape = [2 : i32, 50 : i32, 96 : i32]}> : (tensor<100x96xf32, #ttnn_layout15>) -> tensor<2x50x96xf32, #ttnn_layout22>
        "ttnn.deallocate"(%54) <{force = false}> : (tensor<100x96xf32, #ttnn_layout15>) -> ()
        %56 = "ttnn.add"(%36, %55) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x50x96xf32, #ttnn_layout8>, tensor<2x50x96xf32, #ttnn_layout22>) -> tensor<2x50x96xf32, #ttnn_layout8>
        "ttnn.deallocate"(%55) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout22>) -> ()
        "ttnn.deallocate"(%36) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        %57 = "ttnn.to_memory_config"(%56) : (tensor<2x50x96xf32, #ttnn_layout8>) -> tensor<2x50x96xf32, #ttnn_layout6>
        "ttnn.deallocate"(%56) <{force = false}> : (tensor<2x50x96xf32, #ttnn_layout8>) -> ()
        return %57 : tensor<2x50x96xf32, #ttnn_layout6>
      }
    }
  }
}
