module @jit_bits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_bits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
      func.func public @main(%arg0: tensor<13x35xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<13x35xi32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<13xi32> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35xi32> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xi32> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xf32> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13xi1> {jax.result_info = "result[4]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13xi1>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35xi1> {jax.result_info = "result[5]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35xi1>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xi1> {jax.result_info = "result[6]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xi1>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xf32> {jax.result_info = "result[7]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xf32> {jax.result_info = "result[8]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) {
        %0 = "ttir.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
        %1 = "ttir.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "ttir.constant"() <{value = dense<-2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %3 = "ttir.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
        %4 = "ttir.reduce_bitwise_or"(%arg1) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<13x35xi32>) -> tensor<13xi32>
        %5 = "ttir.reduce_bitwise_and"(%arg1) <{dim_arg = [0 : i32], keep_dim = false}> : (tensor<13x35xi32>) -> tensor<35xi32>
        %6 = "ttir.bitcast_convert"(%arg0) : (tensor<13x35xf32>) -> tensor<13x35xi32>
        %7 = "ttir.reduce_precision"(%arg0) <{exponent_bits = 8 : si32, mantissa_bits = 7 : si32}> : (tensor<13x35xf32>) -> tensor<13x35xf32>
        %8 = "ttir.reshape"(%3) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1xf32>
        %9 = "ttir.broadcast"(%8) <{broadcast_dimensions = array<i64: 13, 35>}> : (tensor<1x1xf32>) -> tensor<13x35xf32>
        %10 = "ttir.gt"(%arg0, %9) : (tensor<13x35xf32>, tensor<13x35xf32>) -> tensor<13x35xi1>
        %11 = "ttir.reduce_or"(%10) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<13x35xi1>) -> tensor<13xi1>
        %12 = "ttir.reshape"(%2) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1xf32>
        %13 = "ttir.broadcast"(%12) <{broadcast_dimensions = array<i64: 13, 35>}> : (tensor<1x1xf32>) -> tensor<13x35xf32>
        %14 = "ttir.gt"(%arg0, %13) : (tensor<13x35xf32>, tensor<13x35xf32>) -> tensor<13x35xi1>
        %15 = "ttir.reduce_and"(%14) <{dim_arg = [0 : i32], keep_dim = false}> : (tensor<13x35xi1>) -> tensor<35xi1>
        %16 = "ttir.reshape"(%1) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1xf32>
        %17 = "ttir.broadcast"(%16) <{broadcast_dimensions = array<i64: 13, 35>}> : (tensor<1x1xf32>) -> tensor<13x35xf32>
        %18 = "ttir.gt"(%arg0, %17) : (tensor<13x35xf32>, tensor<13x35xf32>) -> tensor<13x35xi1>
        %19 = "ttir.reshape"(%0) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %20 = "ttir.broadcast"(%19) <{broadcast_dimensions = array<i64: 13, 35>}> : (tensor<1x1xi32>) -> tensor<13x35xi32>
        %21 = "ttir.gt"(%arg1, %20) : (tensor<13x35xi32>, tensor<13x35xi32>) -> tensor<13x35xi1>
        %22 = "ttir.logical_not"(%21) : (tensor<13x35xi1>) -> tensor<13x35xi1>
        %23 = "ttir.logical_or"(%18, %22) : (tensor<13x35xi1>, tensor<13x35xi1>) -> tensor<13x35xi1>
        %24 = "ttir.cumulative"(%arg0) <{dim = 1 : i64, reduction = #ttcore.reduce_type<max>, reverse = false}> : (tensor<13x35xf32>) -> tensor<13x35xf32>
        %25 = "ttir.cumulative"(%arg0) <{dim = 1 : i64, reduction = #ttcore.reduce_type<logsumexp>, reverse = false}> : (tensor<13x35xf32>) -> tensor<13x35xf32>
        return %4, %5, %6, %7, %11, %15, %23, %24, %25 : tensor<13xi32>, tensor<35xi32>, tensor<13x35xi32>, tensor<13x35xf32>, tensor<13xi1>, tensor<35xi1>, tensor<13x35xi1>, tensor<13x35xf32>, tensor<13x35xf32>
      }
    }
  }
}
