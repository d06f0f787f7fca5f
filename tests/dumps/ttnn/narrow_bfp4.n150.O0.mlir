#dram = #ttnn.buffer_type<dram>
#system_memory = #ttnn.buffer_type<system_memory>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<70x100xf32, #system_memory>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x4x!ttcore.tile<32x32, bfp_bf4>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<70x100xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x4x!ttcore.tile<32x32, f32>, #system_memory>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x4x!ttcore.tile<32x32, bfp_bf4>, #system_memory>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x33xf32, #system_memory>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, bfp_bf4>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x33xf32, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, f32>, #system_memory>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, bfp_bf4>, #system_memory>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x100xf32, #system_memory>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x100xf32, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<45x70xf32, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit__narrow attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit__narrow attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0(%arg0: tensor<70x100xf32, #ttnn_layout>) -> tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.to_device"(%arg0, %0) : (tensor<70x100xf32, #ttnn_layout>, !ttnn.device) -> tensor<70x100xf32, #ttnn_layout2>
        %2 = "ttnn.to_layout"(%1) : (tensor<70x100xf32, #ttnn_layout2>) -> tensor<70x100xf32, #ttnn_layout3>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<70x100xf32, #ttnn_layout2>) -> ()
        %3 = "ttnn.from_device"(%2) : (tensor<70x100xf32, #ttnn_layout3>) -> tensor<70x100xf32, #ttnn_layout4>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<70x100xf32, #ttnn_layout3>) -> ()
        %4 = "ttnn.typecast"(%3) : (tensor<70x100xf32, #ttnn_layout4>) -> tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout5>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<70x100xf32, #ttnn_layout4>) -> ()
        %5 = "ttnn.to_device"(%4, %0) : (tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout5>, !ttnn.device) -> tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout1>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout5>) -> ()
        return %5 : tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout1>
      }
      func.func private @main_const_eval_1(%arg0: tensor<100x33xf32, #ttnn_layout6>) -> tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout7> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.to_device"(%arg0, %0) : (tensor<100x33xf32, #ttnn_layout6>, !ttnn.device) -> tensor<100x33xf32, #ttnn_layout8>
        %2 = "ttnn.to_layout"(%1) : (tensor<100x33xf32, #ttnn_layout8>) -> tensor<100x33xf32, #ttnn_layout9>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<100x33xf32, #ttnn_layout8>) -> ()
        %3 = "ttnn.from_device"(%2) : (tensor<100x33xf32, #ttnn_layout9>) -> tensor<100x33xf32, #ttnn_layout10>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<100x33xf32, #ttnn_layout9>) -> ()
        %4 = "ttnn.typecast"(%3) : (tensor<100x33xf32, #ttnn_layout10>) -> tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout11>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<100x33xf32, #ttnn_layout10>) -> ()
        %5 = "ttnn.to_device"(%4, %0) : (tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout11>, !ttnn.device) -> tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout7>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout11>) -> ()
        return %5 : tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout7>
      }
      func.func private @main_const_eval_2(%arg0: tensor<100xf32, #ttnn_layout12>) -> tensor<100xf32, #ttnn_layout13> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.to_device"(%arg0, %0) : (tensor<100xf32, #ttnn_layout12>, !ttnn.device) -> tensor<100xf32, #ttnn_layout14>
        %2 = "ttnn.to_layout"(%1) : (tensor<100xf32, #ttnn_layout14>) -> tensor<100xf32, #ttnn_layout13>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<100xf32, #ttnn_layout14>) -> ()
        return %2 : tensor<100xf32, #ttnn_layout13>
      }
      func.func public @main(%arg0: tensor<45x70xf32, #ttnn_layout15> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<45x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<70x100xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<70x100xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>, ttir.name = "w139971946819744"}, %arg2: tensor<100xf32, #ttnn_layout12> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>, ttir.name = "w139971946819840"}, %arg3: tensor<100x33xf32, #ttnn_layout6> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100x33xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>, ttir.name = "w139971946819936"}) -> (tensor<45x33xf32, #ttnn_layout16> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<45x33xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_2, [%arg2]) : (tensor<100xf32, #ttnn_layout12>) -> tensor<100xf32, #ttnn_layout13>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<100xf32, #ttnn_layout12>) -> ()
        %1 = ttcore.load_cached(@main_const_eval_1, [%arg3]) : (tensor<100x33xf32, #ttnn_layout6>) -> tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout7>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<100x33xf32, #ttnn_layout6>) -> ()
        %2 = ttcore.load_cached(@main_const_eval_0, [%arg1]) : (tensor<70x100xf32, #ttnn_layout>) -> tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout1>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<70x100xf32, #ttnn_layout>) -> ()
        %3 = "ttnn.to_layout"(%arg0) : (tensor<45x70xf32, #ttnn_layout15>) -> tensor<45x70xf32, #ttnn_layout17>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<45x70xf32, #ttnn_layout15>) -> ()
        %4 = "ttnn.linear"(%3, %2, %0) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<45x70xf32, #ttnn_layout17>, tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout1>, tensor<100xf32, #ttnn_layout13>) -> tensor<45x100xf32, #ttnn_layout18>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<45x70xf32, #ttnn_layout17>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<70x100x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<100xf32, #ttnn_layout13>) -> ()
        %5 = "ttnn.relu"(%4) : (tensor<45x100xf32, #ttnn_layout18>) -> tensor<45x100xf32, #ttnn_layout18>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<45x100xf32, #ttnn_layout18>) -> ()
        %6 = "ttnn.matmul"(%5, %1) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<45x100xf32, #ttnn_layout18>, tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout7>) -> tensor<45x33xf32, #ttnn_layout16>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<45x100xf32, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<100x33x!ttcore.tile<32x32, bfp_bf4>, #ttnn_layout7>) -> ()
        return %6 : tensor<45x33xf32, #ttnn_layout16>
      }
    }
  }
}
