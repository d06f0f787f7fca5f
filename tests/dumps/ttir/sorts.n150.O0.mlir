module @jit_sorts attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_sorts attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
      func.func public @main(%arg0: tensor<35x70xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<35x70xf32> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xi32> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x5xf32> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x5xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x5xi32> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x5xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32> {jax.result_info = "result[4]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32> {jax.result_info = "result[5]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) {
        %values, %indices = "ttir.sort"(%arg0) <{descending = false, dim = 1 : si32, stable = true}> : (tensor<35x70xf32>) -> (tensor<35x70xf32>, tensor<35x70xi32>)
        %0 = "ttir.arange"() <{arange_dimension = 0 : i64, end = 70 : si64, start = 0 : si64, step = 1 : si64}> : () -> tensor<70xi32>
        %1 = "ttir.reshape"(%0) <{shape = [1 : i32, 70 : i32]}> : (tensor<70xi32>) -> tensor<1x70xi32>
        %values_0, %indices_1 = "ttir.sort"(%arg0) <{descending = true, dim = 1 : si32, stable = true}> : (tensor<35x70xf32>) -> (tensor<35x70xf32>, tensor<35x70xi32>)
        %2 = "ttir.slice_static"(%values_0) <{begins = [0 : i32, 0 : i32], ends = [35 : i32, 5 : i32], step = [1 : i32, 1 : i32]}> : (tensor<35x70xf32>) -> tensor<35x5xf32>
        %3 = "ttir.slice_static"(%indices_1) <{begins = [0 : i32, 0 : i32], ends = [35 : i32, 5 : i32], step = [1 : i32, 1 : i32]}> : (tensor<35x70xi32>) -> tensor<35x5xi32>
        %4 = "ttir.cumsum"(%arg0) <{dim = 1 : i64}> : (tensor<35x70xf32>) -> tensor<35x70xf32>
        %5 = "ttir.reverse"(%arg0) <{dimensions = array<i64: 1>}> : (tensor<35x70xf32>) -> tensor<35x70xf32>
        return %values, %indices, %2, %3, %4, %5 : tensor<35x70xf32>, tensor<35x70xi32>, tensor<35x5xf32>, tensor<35x5xi32>, tensor<35x70xf32>, tensor<35x70xf32>
      }
    }
  }
}
