#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x70xsi32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x3x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x3x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<35x70xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, u16>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<70x35xf32, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 70 + d1, d2), <1x1>, memref<70x35xf32, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 96 + d1, d2), <1x1>, memref<3x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_sorts attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_sorts attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1x70xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.arange"(%0) <{end = -1 : si64, start = 69 : si64, step = -1 : si64}> : (!ttnn.device) -> tensor<70xsi32, #ttnn_layout1>
        %2 = "ttnn.reshape"(%1) <{shape = [1 : i32, 1 : i32, 70 : i32]}> : (tensor<70xsi32, #ttnn_layout1>) -> tensor<1x1x70xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<70xsi32, #ttnn_layout1>) -> ()
        %3 = "ttnn.to_layout"(%2) : (tensor<1x1x70xsi32, #ttnn_layout2>) -> tensor<1x1x70xsi32, #ttnn_layout>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1x70xsi32, #ttnn_layout2>) -> ()
        return %3 : tensor<1x1x70xsi32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<35x70xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<35x70xf32, #ttnn_layout4> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xsi32, #ttnn_layout5> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x5xf32, #ttnn_layout6> {jax.result_info = "result[2][0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x5xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x5xsi32, #ttnn_layout7> {jax.result_info = "result[2][1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x5xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32, #ttnn_layout4> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32, #ttnn_layout4> {jax.result_info = "result[4]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1x70xsi32, #ttnn_layout>
        %1 = "ttnn.to_layout"(%arg0) : (tensor<35x70xf32, #ttnn_layout3>) -> tensor<35x70xf32, #ttnn_layout4>
        %values, %indices = "ttnn.sort"(%1) <{descending = false, dim = 1 : si8, stable = true}> : (tensor<35x70xf32, #ttnn_layout4>) -> (tensor<35x70xf32, #ttnn_layout4>, tensor<35x70xui16, #ttnn_layout8>)
        %2 = "ttnn.typecast"(%indices) : (tensor<35x70xui16, #ttnn_layout8>) -> tensor<35x70xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%indices) <{force = false}> : (tensor<35x70xui16, #ttnn_layout8>) -> ()
        %values_0, %indices_1 = "ttnn.topk"(%1) <{dim = 1 : si32, k = 5 : i32, largest = true, sorted = true}> : (tensor<35x70xf32, #ttnn_layout4>) -> (tensor<35x5xf32, #ttnn_layout6>, tensor<35x5xsi32, #ttnn_layout7>)
        %3 = "ttnn.cumsum"(%1) <{dim = 1 : si32}> : (tensor<35x70xf32, #ttnn_layout4>) -> tensor<35x70xf32, #ttnn_layout4>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<35x70xf32, #ttnn_layout4>) -> ()
        %4 = "ttnn.permute"(%arg0) <{permutation = array<i64: 1, 0>}> : (tensor<35x70xf32, #ttnn_layout3>) -> tensor<70x35xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<35x70xf32, #ttnn_layout3>) -> ()
        %5 = "ttnn.reshape"(%4) <{shape = [1 : i32, 70 : i32, 35 : i32]}> : (tensor<70x35xf32, #ttnn_layout9>) -> tensor<1x70x35xf32, #ttnn_layout10>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<70x35xf32, #ttnn_layout9>) -> ()
        %6 = "ttnn.rows_gather"(%5, %0) <{column = false, fill_out_of_bounds = false, sizes = array<i64: 70>, windows = array<i64: 1>}> : (tensor<1x70x35xf32, #ttnn_layout10>, tensor<1x1x70xsi32, #ttnn_layout>) -> tensor<1x70x35xf32, #ttnn_layout10>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x70x35xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1x70xsi32, #ttnn_layout>) -> ()
        %7 = "ttnn.to_layout"(%6) : (tensor<1x70x35xf32, #ttnn_layout10>) -> tensor<1x70x35xf32, #ttnn_layout11>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<1x70x35xf32, #ttnn_layout10>) -> ()
        %8 = "ttnn.reshape"(%7) <{shape = [70 : i32, 35 : i32]}> : (tensor<1x70x35xf32, #ttnn_layout11>) -> tensor<70x35xf32, #ttnn_layout12>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1x70x35xf32, #ttnn_layout11>) -> ()
        %9 = "ttnn.permute"(%8) <{permutation = array<i64: 1, 0>}> : (tensor<70x35xf32, #ttnn_layout12>) -> tensor<35x70xf32, #ttnn_layout4>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<70x35xf32, #ttnn_layout12>) -> ()
        return %values, %2, %values_0, %indices_1, %3, %9 : tensor<35x70xf32, #ttnn_layout4>, tensor<35x70xsi32, #ttnn_layout5>, tensor<35x5xf32, #ttnn_layout6>, tensor<35x5xsi32, #ttnn_layout7>, tensor<35x70xf32, #ttnn_layout4>, tensor<35x70xf32, #ttnn_layout4>
      }
    }
  }
}
