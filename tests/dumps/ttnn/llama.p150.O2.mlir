#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 64 + d1 * 64 + d2, d3), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 64 + d1 * 64 + d2, d3), <1x1>, memref<2x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 37 + d1 * 37 + d2, d3), <1x1>, memref<37x8xf32, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 37 + d1 * 37 + d2, d3), <1x1>, memref<37x16xf32, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 37 + d1, d2), <1x1>, memref<74x64xf32, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x64xf32, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x64xf32, #dram>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x32xf32, #dram>, <interleaved>>
#ttnn_layout20 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x128xf32, #dram>, <interleaved>>
#ttnn_layout21 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<128x64xf32, #dram>, <interleaved>>
#ttnn_layout22 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <1x1>, memref<4x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout23 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout24 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <2x2>, memref<2x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,1)>]>>
#ttnn_layout25 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x2>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <width_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,0)>]>>
#ttnn_layout26 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout27 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout28 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <3x2>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,2)>]>>
#ttnn_layout29 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1184 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout30 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout31 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <3x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (2,0)>]>>
#ttnn_layout32 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 128 + d1 * 64 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout33 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <16x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (4,1)>]>>
#ttnn_layout34 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <1x1>, memref<16x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout35 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <16x1>, memref<1x2x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (4,1)>]>>
#ttnn_layout36 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, d3), <1x1>, memref<16x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout37 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout38 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <4x1>, memref<1x2x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (3,0)>]>>
#ttnn_layout39 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout40 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <3x4>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (3,2)>]>>
#ttnn_layout41 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <4x4>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (3,3)>]>>
#ttnn_layout42 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_llama attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_llama attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1x1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = -1.000000e+30 : f32, shape = #ttnn.shape<1x1x1x1>}> : (!ttnn.device) -> tensor<1x1x1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1x1x1xf32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> (tensor<1x1x37x16xf32, #ttnn_layout1>, tensor<1x1x37x16xf32, #ttnn_layout1>, tensor<1x1x37x37xbf16, #ttnn_layout2>) attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xbf16, #ttnn_layout3>
        %2 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout4>
        %3 = "ttnn.ones"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xbf16, #ttnn_layout3>
        %4 = "ttnn.ones"(%0) <{shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xf32, #ttnn_layout5>
        %5 = "ttnn.full"(%0) <{fill_value = 1.000000e+04 : f32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xf32, #ttnn_layout5>
        %6 = "ttnn.full"(%0) <{fill_value = 8.000000e+00 : f32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xf32, #ttnn_layout5>
        %7 = "ttnn.arange"(%0) <{end = 8 : si64, start = 0 : si64, step = 1 : si64}> : (!ttnn.device) -> tensor<8xsi32, #ttnn_layout6>
        %8 = "ttnn.typecast"(%7) : (tensor<8xsi32, #ttnn_layout6>) -> tensor<8xf32, #ttnn_layout5>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<8xsi32, #ttnn_layout6>) -> ()
        %9 = "ttnn.divide"(%8, %6) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<8xf32, #ttnn_layout5>, tensor<1xf32, #ttnn_layout5>) -> tensor<8xf32, #ttnn_layout5>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<8xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<1xf32, #ttnn_layout5>) -> ()
        %10 = "ttnn.pow_tensor"(%5, %9) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xf32, #ttnn_layout5>, tensor<8xf32, #ttnn_layout5>) -> tensor<8xf32, #ttnn_layout5>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<8xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1xf32, #ttnn_layout5>) -> ()
        %11 = "ttnn.divide"(%4, %10) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xf32, #ttnn_layout5>, tensor<8xf32, #ttnn_layout5>) -> tensor<8xf32, #ttnn_layout5>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<8xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1xf32, #ttnn_layout5>) -> ()
        %12 = "ttnn.arange"(%0) <{end = 37 : si64, start = 0 : si64, step = 1 : si64}> : (!ttnn.device) -> tensor<37xsi32, #ttnn_layout7>
        %13 = "ttnn.reshape"(%12) <{shape = [37 : i32, 1 : i32]}> : (tensor<37xsi32, #ttnn_layout7>) -> tensor<37x1xsi32, #ttnn_layout8>
        %14 = "ttnn.typecast"(%13) : (tensor<37x1xsi32, #ttnn_layout8>) -> tensor<37x1xf32, #ttnn_layout9>
        %15 = "ttnn.reshape"(%11) <{shape = [1 : i32, 8 : i32]}> : (tensor<8xf32, #ttnn_layout5>) -> tensor<1x8xf32, #ttnn_layout10>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<8xf32, #ttnn_layout5>) -> ()
        %16 = "ttnn.multiply"(%14, %15) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<37x1xf32, #ttnn_layout9>, tensor<1x8xf32, #ttnn_layout10>) -> tensor<37x8xf32, #ttnn_layout9>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<1x8xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<37x1xf32, #ttnn_layout9>) -> ()
        %17 = "ttnn.cos"(%16) : (tensor<37x8xf32, #ttnn_layout9>) -> tensor<37x8xf32, #ttnn_layout9>
        %18 = "ttnn.sin"(%16) : (tensor<37x8xf32, #ttnn_layout9>) -> tensor<37x8xf32, #ttnn_layout9>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<37x8xf32, #ttnn_layout9>) -> ()
        %19 = "ttnn.reshape"(%17) <{shape = [1 : i32, 1 : i32, 37 : i32, 8 : i32]}> : (tensor<37x8xf32, #ttnn_layout9>) -> tensor<1x1x37x8xf32, #ttnn_layout1>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<37x8xf32, #ttnn_layout9>) -> ()
        %20 = "ttnn.reshape"(%18) <{shape = [1 : i32, 1 : i32, 37 : i32, 8 : i32]}> : (tensor<37x8xf32, #ttnn_layout9>) -> tensor<1x1x37x8xf32, #ttnn_layout1>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<37x8xf32, #ttnn_layout9>) -> ()
        %21 = "ttnn.to_layout"(%20) : (tensor<1x1x37x8xf32, #ttnn_layout1>) -> tensor<1x1x37x8xf32, #ttnn_layout11>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<1x1x37x8xf32, #ttnn_layout1>) -> ()
        %22 = "ttnn.concat"(%21, %21) <{dim = 3 : si32}> : (tensor<1x1x37x8xf32, #ttnn_layout11>, tensor<1x1x37x8xf32, #ttnn_layout11>) -> tensor<1x1x37x16xf32, #ttnn_layout12>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<1x1x37x8xf32, #ttnn_layout11>) -> ()
        %23 = "ttnn.to_layout"(%22) : (tensor<1x1x37x16xf32, #ttnn_layout12>) -> tensor<1x1x37x16xf32, #ttnn_layout1>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<1x1x37x16xf32, #ttnn_layout12>) -> ()
        %24 = "ttnn.to_layout"(%19) : (tensor<1x1x37x8xf32, #ttnn_layout1>) -> tensor<1x1x37x8xf32, #ttnn_layout11>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<1x1x37x8xf32, #ttnn_layout1>) -> ()
        %25 = "ttnn.concat"(%24, %24) <{dim = 3 : si32}> : (tensor<1x1x37x8xf32, #ttnn_layout11>, tensor<1x1x37x8xf32, #ttnn_layout11>) -> tensor<1x1x37x16xf32, #ttnn_layout12>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<1x1x37x8xf32, #ttnn_layout11>) -> ()
        %26 = "ttnn.to_layout"(%25) : (tensor<1x1x37x16xf32, #ttnn_layout12>) -> tensor<1x1x37x16xf32, #ttnn_layout1>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<1x1x37x16xf32, #ttnn_layout12>) -> ()
        %27 = "ttnn.add"(%13, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<37x1xsi32, #ttnn_layout8>, tensor<1x1xsi32, #ttnn_layout4>) -> tensor<37x1xsi32, #ttnn_layout8>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<37x1xsi32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout4>) -> ()
        %28 = "ttnn.repeat"(%27) <{repeat_dims = #ttnn.shape<1x37>}> : (tensor<37x1xsi32, #ttnn_layout8>) -> tensor<37x37xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<37x1xsi32, #ttnn_layout8>) -> ()
        %29 = "ttnn.reshape"(%12) <{shape = [1 : i32, 37 : i32]}> : (tensor<37xsi32, #ttnn_layout7>) -> tensor<1x37xsi32, #ttnn_layout14>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<37xsi32, #ttnn_layout7>) -> ()
        %30 = "ttnn.ge"(%28, %29) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<37x37xsi32, #ttnn_layout13>, tensor<1x37xsi32, #ttnn_layout14>) -> tensor<37x37xbf16, #ttnn_layout15>
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<1x37xsi32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<37x37xsi32, #ttnn_layout13>) -> ()
        %31 = "ttnn.where"(%30, %3, %1) : (tensor<37x37xbf16, #ttnn_layout15>, tensor<1x1xbf16, #ttnn_layout3>, tensor<1x1xbf16, #ttnn_layout3>) -> tensor<37x37xbf16, #ttnn_layout15>
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<37x37xbf16, #ttnn_layout15>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x1xbf16, #ttnn_layout3>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1xbf16, #ttnn_layout3>) -> ()
        %32 = "ttnn.reshape"(%31) <{shape = [1 : i32, 1 : i32, 37 : i32, 37 : i32]}> : (tensor<37x37xbf16, #ttnn_layout15>) -> tensor<1x1x37x37xbf16, #ttnn_layout2>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<37x37xbf16, #ttnn_layout15>) -> ()
        return %23, %26, %32 : tensor<1x1x37x16xf32, #ttnn_layout1>, tensor<1x1x37x16xf32, #ttnn_layout1>, tensor<1x1x37x37xbf16, #ttnn_layout2>
      }
      func.func private @main_const_eval_2() -> tensor<1x1x1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 4.000000e+00 : f32, shape = #ttnn.shape<1x1x1x1>}> : (!ttnn.device) -> tensor<1x1x1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1x1x1xf32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<2x37x64xf32, #ttnn_layout16> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x37x64xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<64xf32, #ttnn_layout17> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<64x64xf32, #ttnn_layout18> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x64xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg3: tensor<64x32xf32, #ttnn_layout19> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x32xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg4: tensor<64x32xf32, #ttnn_layout19> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x32xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg5: tensor<64x64xf32, #ttnn_layout18> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x64xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg6: tensor<64x128xf32, #ttnn_layout20> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x128xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg7: tensor<128x64xf32, #ttnn_layout21> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128x64xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg8: tensor<64x128xf32, #ttnn_layout20> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x128xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<2x37x64xf32, #ttnn_layout22> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x37x64xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1x1x1xf32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<1x1x1x1xf32, #ttnn_layout>
        %2:3 = ttcore.load_cached(@main_const_eval_1, []) : () -> (tensor<1x1x37x16xf32, #ttnn_layout1>, tensor<1x1x37x16xf32, #ttnn_layout1>, tensor<1x1x37x37xbf16, #ttnn_layout2>)
        %3 = "ttnn.to_layout"(%arg0) : (tensor<2x37x64xf32, #ttnn_layout16>) -> tensor<2x37x64xf32, #ttnn_layout22>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout16>) -> ()
        %4 = "ttnn.to_layout"(%arg1) : (tensor<64xf32, #ttnn_layout17>) -> tensor<64xf32, #ttnn_layout23>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<64xf32, #ttnn_layout17>) -> ()
        %5 = "ttnn.to_memory_config"(%3) : (tensor<2x37x64xf32, #ttnn_layout22>) -> tensor<2x37x64xf32, #ttnn_layout24>
        %6 = "ttnn.to_memory_config"(%4) : (tensor<64xf32, #ttnn_layout23>) -> tensor<64xf32, #ttnn_layout25>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<64xf32, #ttnn_layout23>) -> ()
        %7 = "ttnn.rms_norm"(%5, %6) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true, packer_l1_acc = true>, epsilon = 9.99999997E-7 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<2x37x64xf32, #ttnn_layout24>, tensor<64xf32, #ttnn_layout25>) -> tensor<2x37x64xf32, #ttnn_layout24>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout24>) -> ()
        %8 = "ttnn.reshape"(%7) <{shape = [74 : i32, 64 : i32]}> : (tensor<2x37x64xf32, #ttnn_layout24>) -> tensor<74x64xf32, #ttnn_layout26>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout24>) -> ()
        %9 = "ttnn.to_layout"(%arg2) : (tensor<64x64xf32, #ttnn_layout18>) -> tensor<64x64xf32, #ttnn_layout27>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<64x64xf32, #ttnn_layout18>) -> ()
        %10 = "ttnn.matmul"(%8, %9) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<2, 3>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<74x64xf32, #ttnn_layout26>, tensor<64x64xf32, #ttnn_layout27>) -> tensor<74x64xf32, #ttnn_layout28>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<64x64xf32, #ttnn_layout27>) -> ()
        %11 = "ttnn.reshape"(%10) <{shape = [2 : i32, 37 : i32, 4 : i32, 16 : i32]}> : (tensor<74x64xf32, #ttnn_layout28>) -> tensor<2x37x4x16xf32, #ttnn_layout29>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<74x64xf32, #ttnn_layout28>) -> ()
        %12 = "ttnn.permute"(%11) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x37x4x16xf32, #ttnn_layout29>) -> tensor<2x4x37x16xf32, #ttnn_layout30>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<2x37x4x16xf32, #ttnn_layout29>) -> ()
        %13 = "ttnn.to_layout"(%arg3) : (tensor<64x32xf32, #ttnn_layout19>) -> tensor<64x32xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<64x32xf32, #ttnn_layout19>) -> ()
        %14 = "ttnn.matmul"(%8, %13) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<3, 1>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = true, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<74x64xf32, #ttnn_layout26>, tensor<64x32xf32, #ttnn_layout9>) -> tensor<74x32xf32, #ttnn_layout31>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<64x32xf32, #ttnn_layout9>) -> ()
        %15 = "ttnn.reshape"(%14) <{shape = [2 : i32, 37 : i32, 2 : i32, 16 : i32]}> : (tensor<74x32xf32, #ttnn_layout31>) -> tensor<2x37x2x16xf32, #ttnn_layout29>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<74x32xf32, #ttnn_layout31>) -> ()
        %16 = "ttnn.permute"(%15) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x37x2x16xf32, #ttnn_layout29>) -> tensor<2x2x37x16xf32, #ttnn_layout32>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<2x37x2x16xf32, #ttnn_layout29>) -> ()
        %17 = "ttnn.to_layout"(%arg4) : (tensor<64x32xf32, #ttnn_layout19>) -> tensor<64x32xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg4) <{force = false}> : (tensor<64x32xf32, #ttnn_layout19>) -> ()
        %18 = "ttnn.matmul"(%8, %17) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<3, 1>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = true, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<74x64xf32, #ttnn_layout26>, tensor<64x32xf32, #ttnn_layout9>) -> tensor<74x32xf32, #ttnn_layout31>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<64x32xf32, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<74x64xf32, #ttnn_layout26>) -> ()
        %19 = "ttnn.reshape"(%18) <{shape = [2 : i32, 37 : i32, 2 : i32, 16 : i32]}> : (tensor<74x32xf32, #ttnn_layout31>) -> tensor<2x37x2x16xf32, #ttnn_layout29>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<74x32xf32, #ttnn_layout31>) -> ()
        %20 = "ttnn.permute"(%19) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x37x2x16xf32, #ttnn_layout29>) -> tensor<2x2x37x16xf32, #ttnn_layout32>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<2x37x2x16xf32, #ttnn_layout29>) -> ()
        %21 = "ttnn.rotary_embedding"(%12, %2#1, %2#0) : (tensor<2x4x37x16xf32, #ttnn_layout30>, tensor<1x1x37x16xf32, #ttnn_layout1>, tensor<1x1x37x16xf32, #ttnn_layout1>) -> tensor<2x4x64x16xf32, #ttnn_layout30>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<2x4x37x16xf32, #ttnn_layout30>) -> ()
        %22 = "ttnn.slice_static"(%21) <{begins = [0 : i32, 0 : i32, 0 : i32, 0 : i32], ends = [2 : i32, 4 : i32, 37 : i32, 16 : i32], step = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}> : (tensor<2x4x64x16xf32, #ttnn_layout30>) -> tensor<2x4x37x16xf32, #ttnn_layout30>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<2x4x64x16xf32, #ttnn_layout30>) -> ()
        %23 = "ttnn.rotary_embedding"(%16, %2#1, %2#0) : (tensor<2x2x37x16xf32, #ttnn_layout32>, tensor<1x1x37x16xf32, #ttnn_layout1>, tensor<1x1x37x16xf32, #ttnn_layout1>) -> tensor<2x2x64x16xf32, #ttnn_layout32>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<2x2x37x16xf32, #ttnn_layout32>) -> ()
        "ttnn.deallocate"(%2#1) <{force = false}> : (tensor<1x1x37x16xf32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%2#0) <{force = false}> : (tensor<1x1x37x16xf32, #ttnn_layout1>) -> ()
        %24 = "ttnn.slice_static"(%23) <{begins = [0 : i32, 0 : i32, 0 : i32, 0 : i32], ends = [2 : i32, 2 : i32, 37 : i32, 16 : i32], step = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}> : (tensor<2x2x64x16xf32, #ttnn_layout32>) -> tensor<2x2x37x16xf32, #ttnn_layout32>
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<2x2x64x16xf32, #ttnn_layout32>) -> ()
        %25 = "ttnn.repeat_interleave"(%24) <{dim = 1 : si32, repeats = 2 : ui32}> : (tensor<2x2x37x16xf32, #ttnn_layout32>) -> tensor<2x4x37x16xf32, #ttnn_layout33>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<2x2x37x16xf32, #ttnn_layout32>) -> ()
        %26 = "ttnn.repeat_interleave"(%20) <{dim = 1 : si32, repeats = 2 : ui32}> : (tensor<2x2x37x16xf32, #ttnn_layout32>) -> tensor<2x4x37x16xf32, #ttnn_layout33>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<2x2x37x16xf32, #ttnn_layout32>) -> ()
        %27 = "ttnn.to_memory_config"(%22) : (tensor<2x4x37x16xf32, #ttnn_layout30>) -> tensor<2x4x37x16xf32, #ttnn_layout33>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<2x4x37x16xf32, #ttnn_layout30>) -> ()
        %28 = "ttnn.to_memory_config"(%25) : (tensor<2x4x37x16xf32, #ttnn_layout33>) -> tensor<2x4x37x16xf32, #ttnn_layout30>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<2x4x37x16xf32, #ttnn_layout33>) -> ()
        %29 = "ttnn.matmul"(%27, %28) <{transpose_a = false, transpose_b = true}> : (tensor<2x4x37x16xf32, #ttnn_layout33>, tensor<2x4x37x16xf32, #ttnn_layout30>) -> tensor<2x4x37x37xf32, #ttnn_layout34>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<2x4x37x16xf32, #ttnn_layout30>) -> ()
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<2x4x37x16xf32, #ttnn_layout33>) -> ()
        %30 = "ttnn.to_memory_config"(%29) : (tensor<2x4x37x37xf32, #ttnn_layout34>) -> tensor<2x4x37x37xf32, #ttnn_layout35>
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<2x4x37x37xf32, #ttnn_layout34>) -> ()
        %31 = "ttnn.divide"(%30, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x4x37x37xf32, #ttnn_layout35>, tensor<1x1x1x1xf32, #ttnn_layout>) -> tensor<2x4x37x37xf32, #ttnn_layout35>
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<2x4x37x37xf32, #ttnn_layout35>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1x1x1xf32, #ttnn_layout>) -> ()
        %32 = "ttnn.where"(%2#2, %31, %0) : (tensor<1x1x37x37xbf16, #ttnn_layout2>, tensor<2x4x37x37xf32, #ttnn_layout35>, tensor<1x1x1x1xf32, #ttnn_layout>) -> tensor<2x4x37x37xf32, #ttnn_layout35>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<2x4x37x37xf32, #ttnn_layout35>) -> ()
        "ttnn.deallocate"(%2#2) <{force = false}> : (tensor<1x1x37x37xbf16, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1x1x1xf32, #ttnn_layout>) -> ()
        %33 = "ttnn.softmax"(%32) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true>, dimension = 3 : si32, numericStable = true}> : (tensor<2x4x37x37xf32, #ttnn_layout35>) -> tensor<2x4x37x37xf32, #ttnn_layout35>
        "ttnn.deallocate"(%32) <{force = false}> : (tensor<2x4x37x37xf32, #ttnn_layout35>) -> ()
        %34 = "ttnn.to_memory_config"(%26) : (tensor<2x4x37x16xf32, #ttnn_layout33>) -> tensor<2x4x37x16xf32, #ttnn_layout30>
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<2x4x37x16xf32, #ttnn_layout33>) -> ()
        %35 = "ttnn.matmul"(%33, %34) <{transpose_a = false, transpose_b = false}> : (tensor<2x4x37x37xf32, #ttnn_layout35>, tensor<2x4x37x16xf32, #ttnn_layout30>) -> tensor<2x4x37x16xf32, #ttnn_layout36>
        "ttnn.deallocate"(%34) <{force = false}> : (tensor<2x4x37x16xf32, #ttnn_layout30>) -> ()
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<2x4x37x37xf32, #ttnn_layout35>) -> ()
        %36 = "ttnn.permute"(%35) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x37x16xf32, #ttnn_layout36>) -> tensor<2x37x4x16xf32, #ttnn_layout29>
        "ttnn.deallocate"(%35) <{force = false}> : (tensor<2x4x37x16xf32, #ttnn_layout36>) -> ()
        %37 = "ttnn.reshape"(%36) <{shape = [74 : i32, 64 : i32]}> : (tensor<2x37x4x16xf32, #ttnn_layout29>) -> tensor<74x64xf32, #ttnn_layout26>
        "ttnn.deallocate"(%36) <{force = false}> : (tensor<2x37x4x16xf32, #ttnn_layout29>) -> ()
        %38 = "ttnn.to_layout"(%arg5) : (tensor<64x64xf32, #ttnn_layout18>) -> tensor<64x64xf32, #ttnn_layout27>
        "ttnn.deallocate"(%arg5) <{force = false}> : (tensor<64x64xf32, #ttnn_layout18>) -> ()
        %39 = "ttnn.matmul"(%37, %38) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<2, 3>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<74x64xf32, #ttnn_layout26>, tensor<64x64xf32, #ttnn_layout27>) -> tensor<74x64xf32, #ttnn_layout28>
        "ttnn.deallocate"(%38) <{force = false}> : (tensor<64x64xf32, #ttnn_layout27>) -> ()
        "ttnn.deallocate"(%37) <{force = false}> : (tensor<74x64xf32, #ttnn_layout26>) -> ()
        %40 = "ttnn.reshape"(%39) <{shape = [2 : i32, 37 : i32, 64 : i32]}> : (tensor<74x64xf32, #ttnn_layout28>) -> tensor<2x37x64xf32, #ttnn_layout37>
        "ttnn.deallocate"(%39) <{force = false}> : (tensor<74x64xf32, #ttnn_layout28>) -> ()
        %41 = "ttnn.to_memory_config"(%3) : (tensor<2x37x64xf32, #ttnn_layout22>) -> tensor<2x37x64xf32, #ttnn_layout38>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout22>) -> ()
        %42 = "ttnn.to_memory_config"(%40) : (tensor<2x37x64xf32, #ttnn_layout37>) -> tensor<2x37x64xf32, #ttnn_layout38>
        "ttnn.deallocate"(%40) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout37>) -> ()
        %43 = "ttnn.add"(%41, %42) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x37x64xf32, #ttnn_layout38>, tensor<2x37x64xf32, #ttnn_layout38>) -> tensor<2x37x64xf32, #ttnn_layout38>
        "ttnn.deallocate"(%42) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout38>) -> ()
        "ttnn.deallocate"(%41) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout38>) -> ()
        %44 = "ttnn.to_memory_config"(%43) : (tensor<2x37x64xf32, #ttnn_layout38>) -> tensor<2x37x64xf32, #ttnn_layout24>
        %45 = "ttnn.rms_norm"(%44, %6) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true, packer_l1_acc = true>, epsilon = 9.99999997E-7 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<2x37x64xf32, #ttnn_layout24>, tensor<64xf32, #ttnn_layout25>) -> tensor<2x37x64xf32, #ttnn_layout24>
        "ttnn.deallocate"(%44) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout24>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<64xf32, #ttnn_layout25>) -> ()
        %46 = "ttnn.reshape"(%45) <{shape = [74 : i32, 64 : i32]}> : (tensor<2x37x64xf32, #ttnn_layout24>) -> tensor<74x64xf32, #ttnn_layout26>
        "ttnn.deallocate"(%45) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout24>) -> ()
        %47 = "ttnn.to_layout"(%arg6) : (tensor<64x128xf32, #ttnn_layout20>) -> tensor<64x128xf32, #ttnn_layout39>
        "ttnn.deallocate"(%arg6) <{force = false}> : (tensor<64x128xf32, #ttnn_layout20>) -> ()
        %48 = "ttnn.matmul"(%46, %47) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<4, 3>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fused_activation = #ttnn.unary_with_param<op_type = silu>, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<74x64xf32, #ttnn_layout26>, tensor<64x128xf32, #ttnn_layout39>) -> tensor<74x128xf32, #ttnn_layout40>
        "ttnn.deallocate"(%47) <{force = false}> : (tensor<64x128xf32, #ttnn_layout39>) -> ()
        %49 = "ttnn.reshape"(%48) <{shape = [2 : i32, 37 : i32, 128 : i32]}> : (tensor<74x128xf32, #ttnn_layout40>) -> tensor<2x37x128xf32, #ttnn_layout37>
        "ttnn.deallocate"(%48) <{force = false}> : (tensor<74x128xf32, #ttnn_layout40>) -> ()
        %50 = "ttnn.to_layout"(%arg8) : (tensor<64x128xf32, #ttnn_layout20>) -> tensor<64x128xf32, #ttnn_layout39>
        "ttnn.deallocate"(%arg8) <{force = false}> : (tensor<64x128xf32, #ttnn_layout20>) -> ()
        %51 = "ttnn.matmul"(%46, %50) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<4, 3>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<74x64xf32, #ttnn_layout26>, tensor<64x128xf32, #ttnn_layout39>) -> tensor<74x128xf32, #ttnn_layout40>
        "ttnn.deallocate"(%50) <{force = false}> : (tensor<64x128xf32, #ttnn_layout39>) -> ()
        "ttnn.deallocate"(%46) <{force = false}> : (tensor<74x64xf32, #ttnn_layout26>) -> ()
        %52 = "ttnn.reshape"(%51) <{shape = [2 : i32, 37 : i32, 128 : i32]}> : (tensor<74x128xf32, #ttnn_layout40>) -> tensor<2x37x128xf32, #ttnn_layout37>
        "ttnn.deallocate"(%51) <{force = false}> : (tensor<74x128xf32, #ttnn_layout40>) -> ()
        %53 = "ttnn.multiply"(%49, %52) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x37x128xf32, #ttnn_layout37>, tensor<2x37x128xf32, #ttnn_layout37>) -> tensor<2x37x128xf32, #ttnn_layout41>
        "ttnn.deallocate"(%52) <{force = false}> : (tensor<2x37x128xf32, #ttnn_layout37>) -> ()
        "ttnn.deallocate"(%49) <{force = false}> : (tensor<2x37x128xf32, #ttnn_layout37>) -> ()
        %54 = "ttnn.reshape"(%53) <{shape = [74 : i32, 128 : i32]}> : (tensor<2x37x128xf32, #ttnn_layout41>) -> tensor<74x128xf32, #ttnn_layout26>
        "ttnn.deallocate"(%53) <{force = false}> : (tensor<2x37x128xf32, #ttnn_layout41>) -> ()
        %55 = "ttnn.to_layout"(%arg7) : (tensor<128x64xf32, #ttnn_layout21>) -> tensor<128x64xf32, #ttnn_layout42>
        "ttnn.deallocate"(%arg7) <{force = false}> : (tensor<128x64xf32, #ttnn_layout21>) -> ()
        %56 = "ttnn.matmul"(%54, %55) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<2, 3>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<74x128xf32, #ttnn_layout26>, tensor<128x64xf32, #ttnn_layout42>) -> tensor<74x64xf32, #ttnn_layout28>
        "ttnn.deallocate"(%55) <{force = false}> : (tensor<128x64xf32, #ttnn_layout42>) -> ()
        "ttnn.deallocate"(%54) <{force = false}> : (tensor<74x128xf32, #ttnn_layout26>) -> ()
        %57 = "ttnn.reshape"(%56) <{shape = [2 : i32, 37 : i32, 64 : i32]}> : (tensor<74x64xf32, #ttnn_layout28>) -> tensor<2x37x64xf32, #ttnn_layout37>
        "ttnn.deallocate"(%56) <{force = false}> : (tensor<74x64xf32, #ttnn_layout28>) -> ()
        %58 = "ttnn.add"(%43, %57) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x37x64xf32, #ttnn_layout38>, tensor<2x37x64xf32, #ttnn_layout37>) -> tensor<2x37x64xf32, #ttnn_layout38>
        "ttnn.deallocate"(%57) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout37>) -> ()
        "ttnn.deallocate"(%43) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout38>) -> ()
        %59 = "ttnn.to_memory_config"(%58) : (tensor<2x37x64xf32, #ttnn_layout38>) -> tensor<2x37x64xf32, #ttnn_layout22>
        "ttnn.deallocate"(%58) <{force = false}> : (tensor<2x37x64xf32, #ttnn_layout38>) -> ()
        return %59 : tensor<2x37x64xf32, #ttnn_layout22>
      }
    }
  }
}
