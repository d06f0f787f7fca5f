module @jit_poolgrad_bf16 attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
  ttcore.device_module {
    builtin.module @jit_poolgrad_bf16 attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
      func.func public @main(%arg0: tensor<1x9x11x5xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<1x9x11x5xbf16>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<1x9x11x5xbf16> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<1x9x11x5xbf16>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) {
        %0 = "ttir.constant"() <{value = dense<2.000000e+00> : tensor<bf16>}> : () -> tensor<bf16>
        %1 = "ttir.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "ttir.reshape"(%1) <{shape = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1x1x1xf32>
        %3 = "ttir.broadcast"(%2) <{broadcast_dimensions = array<i64: 1, 5, 6, 5>}> : (tensor<1x1x1x1xf32>) -> tensor<1x5x6x5xf32>
        %4 = "ttir.typecast"(%3) <{conservative_folding = true}> : (tensor<1x5x6x5xf32>) -> tensor<1x5x6x5xbf16>
        %5 = "ttir.reshape"(%0) <{shape = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}> : (tensor<bf16>) -> tensor<1x1x1x1xbf16>
        %6 = "ttir.broadcast"(%5) <{broadcast_dimensions = array<i64: 1, 5, 6, 5>}> : (tensor<1x1x1x1xbf16>) -> tensor<1x5x6x5xbf16>
        %7 = "ttir.multiply"(%4, %6) : (tensor<1x5x6x5xbf16>, tensor<1x5x6x5xbf16>) -> tensor<1x5x6x5xbf16>
        %8 = "ttir.full"() <{fill_value = 0.000000e+00 : f32, shape = array<i32: 1, 9, 11, 5>}> : () -> tensor<1x9x11x5xbf16>
        %9 = ttir.empty() : tensor<1x5x6x5xbf16>
        %10 = ttir.empty() : tensor<1x5x6x5xi32>
        %result, %result_indices = "ttir.max_pool2d_with_indices"(%arg0, %9, %10) <{ceil_mode = false, dilation = array<i32: 1, 1>, kernel = array<i32: 3, 3>, padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 2, 2>}> : (tensor<1x9x11x5xbf16>, tensor<1x5x6x5xbf16>, tensor<1x5x6x5xi32>) -> (tensor<1x5x6x5xbf16>, tensor<1x5x6x5xi32>)
        %11 = "ttir.reshape"(%result_indices) <{shape = [1 : i32, 30 : i32, 1 : i32, 5 : i32]}> : (tensor<1x5x6x5xi32>) -> tensor<1x30x1x5xi32>
        %12 = "ttir.reshape"(%7) <{shape = [1 : i32, 30 : i32, 1 : i32, 5 : i32]}> : (tensor<1x5x6x5xbf16>) -> tensor<1x30x1x5xbf16>
        %13 = "ttir.reshape"(%8) <{shape = [1 : i32, 99 : i32, 1 : i32, 5 : i32]}> : (tensor<1x9x11x5xbf16>) -> tensor<1x99x1x5xbf16>
        %14 = "ttir.scatter"(%13, %11, %12) <{dim = 1 : i32, scatter_reduce_type = #ttcore.reduce_type<sum>}> : (tensor<1x99x1x5xbf16>, tensor<1x30x1x5xi32>, tensor<1x30x1x5xbf16>) -> tensor<1x99x1x5xbf16>
        %15 = "ttir.reshape"(%14) <{shape = [1 : i32, 9 : i32, 11 : i32, 5 : i32]}> : (tensor<1x99x1x5xbf16>) -> tensor<1x9x11x5xbf16>
        return %15 : tensor<1x9x11x5xbf16>
      }
    }
  }
}
