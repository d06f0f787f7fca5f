#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#system_memory = #ttnn.buffer_type<system_memory>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<70x100xf32, #system_memory>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x4x!ttcore.tile<32x32, bfp_bf8>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<70x100xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x33xf32, #system_memory>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, bfp_bf8>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x33xf32, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x100xf32, #system_memory>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x100xf32, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<45x70xf32, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x3>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (2,1)>]>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x2>, memref<1x2x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,1)>]>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x2>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,1)>]>>
module @jit__narrow attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit__narrow attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0(%arg0: tensor<70x100xf32, #ttnn_layout>) -> tensor<70x100x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.to_device"(%arg0, %0) : (tensor<70x100xf32, #ttnn_layout>, !ttnn.device) -> tensor<70x100xf32, #ttnn_layout2>
        %2 = "ttnn.to_layout"(%1) : (tensor<70x100xf32, #ttnn_layout2>) -> tensor<70x100xf32, #ttnn_layout3>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<70x100xf32, #ttnn_layout2>) -> ()
        %3 = "ttnn.typecast"(%2) : (tensor<70x100xf32, #ttnn_layout3>) -> tensor<70x100x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout1>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<70x100xf32, #ttnn_layout3>) -> ()
        return %3 : tensor<70x100x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout1>
      }
      func.func private @main_const_eval_1(%arg0: tensor<100x33xf32, #ttnn_layout4>) -> tensor<100x33x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.to_device"(%arg0, %0) : (tensor<100x33xf32, #ttnn_layout4>, !ttnn.device) -> tensor<100x33xf32, #ttnn_layout6>
        %2 = "ttnn.to_layout"(%1) : (tensor<100x33xf32, #ttnn_layout6>) -> tensor<100x33xf32, #ttnn_layout7>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<100x33xf32, #ttnn_layout6>) -> ()
        %3 = "ttnn.typecast"(%2) : (tensor<100x33xf32, #ttnn_layout7>) -> tensor<100x33x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout5>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<100x33xf32, #ttnn_layout7>) -> ()
        return %3 : tensor<100x33x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout5>
      }
      func.func private @main_const_eval_2(%arg0: tensor<100xf32, #ttnn_layout8>) -> tensor<100xf32, #ttnn_layout9> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.to_device"(%arg0, %0) : (tensor<100xf32, #ttnn_layout8>, !ttnn.device) -> tensor<100xf32, #ttnn_layout10>
        %2 = "ttnn.to_layout"(%1) : (tensor<100xf32, #ttnn_layout10>) -> tensor<100xf32, #ttnn_layout9>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<100xf32, #ttnn_layout10>) -> ()
        return %2 : tensor<100xf32, #ttnn_layout9>
      }
      func.func public @main(%arg0: tensor<45x70xf32, #ttnn_layout11> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<45x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<70x100xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<70x100xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>, ttir.name = "w140305993969920"}, %arg2: tensor<100xf32, #ttnn_layout8> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>, ttir.name = "w140305993970016"}, %arg3: tensor<100x33xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100x33xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>, ttir.name = "w140305993970112"}) -> (tensor<45x33xf32, #ttnn_layout12> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<45x33xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_2, [%arg2]) : (tensor<100xf32, #ttnn_layout8>) -> tensor<100xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<100xf32, #ttnn_layout8>) -> ()
        %1 = ttcore.load_cached(@main_const_eval_1, [%arg3]) : (tensor<100x33xf32, #ttnn_layout4>) -> tensor<100x33x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout5>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<100x33xf32, #ttnn_layout4>) -> ()
        %2 = ttcore.load_cached(@main_const_eval_0, [%arg1]) : (tensor<70x100xf32, #ttnn_layout>) -> tensor<70x100x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout1>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<70x100xf32, #ttnn_layout>) -> ()
        %3 = "ttnn.to_layout"(%arg0) : (tensor<45x70xf32, #ttnn_layout11>) -> tensor<45x70xf32, #ttnn_layout13>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<45x70xf32, #ttnn_layout11>) -> ()
        %4 = "ttnn.to_memory_config"(%3) : (tensor<45x70xf32, #ttnn_layout13>) -> tensor<45x70xf32, #ttnn_layout14>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<45x70xf32, #ttnn_layout13>) -> ()
        %5 = "ttnn.linear"(%4, %2, %0) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<2, 2>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 2, out_block_h = 1, out_block_w = 2, per_core_m = 1, per_core_n = 2, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<45x70xf32, #ttnn_layout14>, tensor<70x100x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout1>, tensor<100xf32, #ttnn_layout9>) -> tensor<45x100xf32, #ttnn_layout15>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<45x70xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<70x100x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<100xf32, #ttnn_layout9>) -> ()
        %6 = "ttnn.relu"(%5) : (tensor<45x100xf32, #ttnn_layout15>) -> tensor<45x100xf32, #ttnn_layout15>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<45x100xf32, #ttnn_layout15>) -> ()
        %7 = "ttnn.matmul"(%6, %1) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<2, 2>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<45x100xf32, #ttnn_layout15>, tensor<100x33x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout5>) -> tensor<45x33xf32, #ttnn_layout16>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<45x100xf32, #ttnn_layout15>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<100x33x!ttcore.tile<32x32, bfp_bf8>, #ttnn_layout5>) -> ()
        %8 = "ttnn.to_memory_config"(%7) : (tensor<45x33xf32, #ttnn_layout16>) -> tensor<45x33xf32, #ttnn_layout12>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<45x33xf32, #ttnn_layout16>) -> ()
        return %8 : tensor<45x33xf32, #ttnn_layout12>
      }
    }
  }
}
