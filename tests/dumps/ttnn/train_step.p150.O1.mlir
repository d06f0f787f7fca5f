#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x128xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x128xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<128x10xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x10xf32, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<359x64xf32, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<359x10xf32, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x4x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x12x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1.000000e-01 : f32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xf32, #ttnn_layout>
        return %1 : tensor<1xf32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<1x1xf32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = -0.00278551527 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout1>
        return %1 : tensor<1x1xf32, #ttnn_layout1>
      }
      func.func private @main_const_eval_2() -> tensor<1x1xf32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout1>
        return %1 : tensor<1x1xf32, #ttnn_layout1>
      }
      func.func private @main_const_eval_3() -> tensor<1x1xf32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1.000000e-01 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout1>
        return %1 : tensor<1x1xf32, #ttnn_layout1>
      }
      func.func private @main_const_eval_4() -> tensor<1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0xFF800000 : f32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xf32, #ttnn_layout>
        return %1 : tensor<1xf32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<64x128xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x128xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<128xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<128x10xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg3: tensor<10xf32, #ttnn_layout5> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg4: tensor<359x64xf32, #ttnn_layout6> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<359x64xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg5: tensor<359x10xf32, #ttnn_layout7> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<359x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<64x128xf32, #ttnn_layout8> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x128xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<128xf32, #ttnn_layout9> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<128x10xf32, #ttnn_layout10> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<10xf32, #ttnn_layout> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1xf32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_3, []) : () -> tensor<1x1xf32, #ttnn_layout1>
        %2 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<1x1xf32, #ttnn_layout1>
        %3 = ttcore.load_cached(@main_const_eval_4, []) : () -> tensor<1xf32, #ttnn_layout>
        %4 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<1x1xf32, #ttnn_layout1>
        %5 = "ttnn.to_layout"(%arg4) : (tensor<359x64xf32, #ttnn_layout6>) -> tensor<359x64xf32, #ttnn_layout11>
        "ttnn.deallocate"(%arg4) <{force = false}> : (tensor<359x64xf32, #ttnn_layout6>) -> ()
        %6 = "ttnn.to_layout"(%arg0) : (tensor<64x128xf32, #ttnn_layout2>) -> tensor<64x128xf32, #ttnn_layout8>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<64x128xf32, #ttnn_layout2>) -> ()
        %7 = "ttnn.to_layout"(%arg1) : (tensor<128xf32, #ttnn_layout3>) -> tensor<128xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<128xf32, #ttnn_layout3>) -> ()
        %8 = "ttnn.linear"(%5, %6, %7) <{transpose_a = false, transpose_b = false}> : (tensor<359x64xf32, #ttnn_layout11>, tensor<64x128xf32, #ttnn_layout8>, tensor<128xf32, #ttnn_layout9>) -> tensor<359x128xf32, #ttnn_layout12>
        %9 = "ttnn.relu"(%8) : (tensor<359x128xf32, #ttnn_layout12>) -> tensor<359x128xf32, #ttnn_layout12>
        %10 = "ttnn.gt"(%8, %4) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<359x128xf32, #ttnn_layout12>, tensor<1x1xf32, #ttnn_layout1>) -> tensor<359x128xbf16, #ttnn_layout13>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<359x128xf32, #ttnn_layout12>) -> ()
        %11 = "ttnn.to_layout"(%arg2) : (tensor<128x10xf32, #ttnn_layout4>) -> tensor<128x10xf32, #ttnn_layout10>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<128x10xf32, #ttnn_layout4>) -> ()
        %12 = "ttnn.to_layout"(%arg3) : (tensor<10xf32, #ttnn_layout5>) -> tensor<10xf32, #ttnn_layout>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<10xf32, #ttnn_layout5>) -> ()
        %13 = "ttnn.linear"(%9, %11, %12) <{transpose_a = false, transpose_b = false}> : (tensor<359x128xf32, #ttnn_layout12>, tensor<128x10xf32, #ttnn_layout10>, tensor<10xf32, #ttnn_layout>) -> tensor<359x10xf32, #ttnn_layout14>
        %14 = "ttnn.max"(%13) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<359x10xf32, #ttnn_layout14>) -> tensor<359xf32, #ttnn_layout15>
        %15 = "ttnn.maximum"(%3, %14) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xf32, #ttnn_layout>, tensor<359xf32, #ttnn_layout15>) -> tensor<359xf32, #ttnn_layout15>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<359xf32, #ttnn_layout15>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1xf32, #ttnn_layout>) -> ()
        %16 = "ttnn.reshape"(%15) <{shape = [359 : i32, 1 : i32]}> : (tensor<359xf32, #ttnn_layout15>) -> tensor<359x1xf32, #ttnn_layout14>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<359xf32, #ttnn_layout15>) -> ()
        %17 = "ttnn.subtract"(%13, %16) <{activations = [#ttnn.unary_with_param<op_type = exp>], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<359x10xf32, #ttnn_layout14>, tensor<359x1xf32, #ttnn_layout14>) -> tensor<359x10xf32, #ttnn_layout14>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<359x1xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<359x10xf32, #ttnn_layout14>) -> ()
        %18 = "ttnn.sum"(%17) <{dim_arg = [1 : i32], keep_dim = true}> : (tensor<359x10xf32, #ttnn_layout14>) -> tensor<359x1xf32, #ttnn_layout14>
        %19 = "ttnn.to_layout"(%arg5) : (tensor<359x10xf32, #ttnn_layout7>) -> tensor<359x10xf32, #ttnn_layout14>
        "ttnn.deallocate"(%arg5) <{force = false}> : (tensor<359x10xf32, #ttnn_layout7>) -> ()
        %20 = "ttnn.multiply"(%2, %19) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xf32, #ttnn_layout1>, tensor<359x10xf32, #ttnn_layout14>) -> tensor<359x10xf32, #ttnn_layout14>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<359x10xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1xf32, #ttnn_layout1>) -> ()
        %21 = "ttnn.neg"(%20) : (tensor<359x10xf32, #ttnn_layout14>) -> tensor<359x10xf32, #ttnn_layout14>
        %22 = "ttnn.sum"(%21) <{dim_arg = [1 : i32], keep_dim = true}> : (tensor<359x10xf32, #ttnn_layout14>) -> tensor<359x1xf32, #ttnn_layout14>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<359x10xf32, #ttnn_layout14>) -> ()
        %23 = "ttnn.divide"(%22, %18) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<359x1xf32, #ttnn_layout14>, tensor<359x1xf32, #ttnn_layout14>) -> tensor<359x1xf32, #ttnn_layout14>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<359x1xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<359x1xf32, #ttnn_layout14>) -> ()
        %24 = "ttnn.sum"(%23) <{dim_arg = [1 : i32], keep_dim = true}> : (tensor<359x1xf32, #ttnn_layout14>) -> tensor<359x1xf32, #ttnn_layout14>
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<359x1xf32, #ttnn_layout14>) -> ()
        %25 = "ttnn.multiply"(%24, %17) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<359x1xf32, #ttnn_layout14>, tensor<359x10xf32, #ttnn_layout14>) -> tensor<359x10xf32, #ttnn_layout14>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<359x1xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<359x10xf32, #ttnn_layout14>) -> ()
        %26 = "ttnn.add"(%20, %25) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<359x10xf32, #ttnn_layout14>, tensor<359x10xf32, #ttnn_layout14>) -> tensor<359x10xf32, #ttnn_layout14>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<359x10xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<359x10xf32, #ttnn_layout14>) -> ()
        %27 = "ttnn.sum"(%26) <{dim_arg = [0 : i32], keep_dim = true}> : (tensor<359x10xf32, #ttnn_layout14>) -> tensor<1x10xf32, #ttnn_layout1>
        %28 = "ttnn.sum"(%27) <{dim_arg = [0 : i32], keep_dim = false}> : (tensor<1x10xf32, #ttnn_layout1>) -> tensor<10xf32, #ttnn_layout>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<1x10xf32, #ttnn_layout1>) -> ()
        %29 = "ttnn.matmul"(%26, %9) <{transpose_a = true, transpose_b = false}> : (tensor<359x10xf32, #ttnn_layout14>, tensor<359x128xf32, #ttnn_layout12>) -> tensor<10x128xf32, #ttnn_layout16>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<359x128xf32, #ttnn_layout12>) -> ()
        %30 = "ttnn.permute"(%29) <{permutation = array<i64: 1, 0>}> : (tensor<10x128xf32, #ttnn_layout16>) -> tensor<128x10xf32, #ttnn_layout10>
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<10x128xf32, #ttnn_layout16>) -> ()
        %31 = "ttnn.matmul"(%26, %11) <{transpose_a = false, transpose_b = true}> : (tensor<359x10xf32, #ttnn_layout14>, tensor<128x10xf32, #ttnn_layout10>) -> tensor<359x128xf32, #ttnn_layout12>
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<359x10xf32, #ttnn_layout14>) -> ()
        %32 = "ttnn.where"(%10, %31, %4) : (tensor<359x128xbf16, #ttnn_layout13>, tensor<359x128xf32, #ttnn_layout12>, tensor<1x1xf32, #ttnn_layout1>) -> tensor<359x128xf32, #ttnn_layout12>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<359x128xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<359x128xbf16, #ttnn_layout13>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1x1xf32, #ttnn_layout1>) -> ()
        %33 = "ttnn.sum"(%32) <{dim_arg = [0 : i32], keep_dim = true}> : (tensor<359x128xf32, #ttnn_layout12>) -> tensor<1x128xf32, #ttnn_layout16>
        %34 = "ttnn.sum"(%33) <{dim_arg = [0 : i32], keep_dim = false}> : (tensor<1x128xf32, #ttnn_layout16>) -> tensor<128xf32, #ttnn_layout9>
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<1x128xf32, #ttnn_layout16>) -> ()
        %35 = "ttnn.matmul"(%32, %5) <{transpose_a = true, transpose_b = false}> : (tensor<359x128xf32, #ttnn_layout12>, tensor<359x64xf32, #ttnn_layout11>) -> tensor<128x64xf32, #ttnn_layout17>
        "ttnn.deallocate"(%32) <{force = false}> : (tensor<359x128xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<359x64xf32, #ttnn_layout11>) -> ()
        %36 = "ttnn.permute"(%35) <{permutation = array<i64: 1, 0>}> : (tensor<128x64xf32, #ttnn_layout17>) -> tensor<64x128xf32, #ttnn_layout8>
        "ttnn.deallocate"(%35) <{force = false}> : (tensor<128x64xf32, #ttnn_layout17>) -> ()
        %37 = "ttnn.multiply"(%1, %36) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xf32, #ttnn_layout1>, tensor<64x128xf32, #ttnn_layout8>) -> tensor<64x128xf32, #ttnn_layout8>
        "ttnn.deallocate"(%36) <{force = false}> : (tensor<64x128xf32, #ttnn_layout8>) -> ()
        %38 = "ttnn.subtract"(%6, %37) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<64x128xf32, #ttnn_layout8>, tensor<64x128xf32, #ttnn_layout8>) -> tensor<64x128xf32, #ttnn_layout8>
        "ttnn.deallocate"(%37) <{force = false}> : (tensor<64x128xf32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<64x128xf32, #ttnn_layout8>) -> ()
        %39 = "ttnn.multiply"(%0, %34) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xf32, #ttnn_layout>, tensor<128xf32, #ttnn_layout9>) -> tensor<128xf32, #ttnn_layout9>
        "ttnn.deallocate"(%34) <{force = false}> : (tensor<128xf32, #ttnn_layout9>) -> ()
        %40 = "ttnn.subtract"(%7, %39) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<128xf32, #ttnn_layout9>, tensor<128xf32, #ttnn_layout9>) -> tensor<128xf32, #ttnn_layout9>
        "ttnn.deallocate"(%39) <{force = false}> : (tensor<128xf32, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<128xf32, #ttnn_layout9>) -> ()
        %41 = "ttnn.multiply"(%1, %30) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xf32, #ttnn_layout1>, tensor<128x10xf32, #ttnn_layout10>) -> tensor<128x10xf32, #ttnn_layout10>
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<128x10xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1xf32, #ttnn_layout1>) -> ()
        %42 = "ttnn.subtract"(%11, %41) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<128x10xf32, #ttnn_layout10>, tensor<128x10xf32, #ttnn_layout10>) -> tensor<128x10xf32, #ttnn_layout10>
        "ttnn.deallocate"(%41) <{force = false}> : (tensor<128x10xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<128x10xf32, #ttnn_layout10>) -> ()
        %43 = "ttnn.multiply"(%0, %28) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xf32, #ttnn_layout>, tensor<10xf32, #ttnn_layout>) -> tensor<10xf32, #ttnn_layout>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<10xf32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1xf32, #ttnn_layout>) -> ()
        %44 = "ttnn.subtract"(%12, %43) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<10xf32, #ttnn_layout>, tensor<10xf32, #ttnn_layout>) -> tensor<10xf32, #ttnn_layout>
        "ttnn.deallocate"(%43) <{force = false}> : (tensor<10xf32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<10xf32, #ttnn_layout>) -> ()
        return %38, %40, %42, %44 : tensor<64x128xf32, #ttnn_layout8>, tensor<128xf32, #ttnn_layout9>, tensor<128x10xf32, #ttnn_layout10>, tensor<10xf32, #ttnn_layout>
      }
    }
  }
}
