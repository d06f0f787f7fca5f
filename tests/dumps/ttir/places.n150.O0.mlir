module @jit_places attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_places attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
      func.func public @main(%arg0: tensor<21x31xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<21x31xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<3x5x7xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x5x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<4xi32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<21x31xf32> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<21x31xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<21x31xf32> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<21x31xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<3x5x7xf32> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x5x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<4x5xf32> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x5xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<4x4x7xf32> {jax.result_info = "result[4]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x4x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) {
        %0 = "ttir.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %1 = "ttir.constant"() <{value = dense<7> : tensor<i32>}> : () -> tensor<i32>
        %2 = "ttir.constant"() <{value = dense<-1.000000e-01> : tensor<f32>}> : () -> tensor<f32>
        %3 = "ttir.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
        %4 = "ttir.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %5 = "ttir.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %6 = "ttir.constant"() <{value = dense<31> : tensor<i32>}> : () -> tensor<i32>
        %7 = "ttir.constant"() <{value = dense<21> : tensor<i32>}> : () -> tensor<i32>
        %8 = "ttir.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %9 = "ttir.reshape"(%8) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %10 = "ttir.broadcast"(%9) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %11 = "ttir.lt"(%arg2, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %12 = "ttir.reshape"(%7) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %13 = "ttir.broadcast"(%12) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %14 = "ttir.add"(%arg2, %13) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %15 = "ttir.where"(%11, %14, %arg2) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %16 = "ttir.reshape"(%6) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %17 = "ttir.broadcast"(%16) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %18 = "ttir.add"(%arg2, %17) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %19 = "ttir.where"(%11, %18, %arg2) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %20 = "ttir.reshape"(%15) <{shape = [4 : i32, 1 : i32]}> : (tensor<4xi32>) -> tensor<4x1xi32>
        %21 = "ttir.reshape"(%19) <{shape = [4 : i32, 1 : i32]}> : (tensor<4xi32>) -> tensor<4x1xi32>
        %22 = "ttir.reshape"(%5) <{shape = [1 : i32]}> : (tensor<f32>) -> tensor<1xf32>
        %23 = "ttir.broadcast"(%22) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xf32>) -> tensor<4xf32>
        %24 = "ttir.reshape"(%arg0) <{shape = [1 : i32, 21 : i32, 31 : i32]}> : (tensor<21x31xf32>) -> tensor<1x21x31xf32>
        %25 = "ttir.reshape"(%20) <{shape = [1 : i32, 4 : i32]}> : (tensor<4x1xi32>) -> tensor<1x4xi32>
        %26 = "ttir.reshape"(%25) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<1x4xi32>) -> tensor<1x1x4xi32>
        %27 = "ttir.typecast"(%26) <{conservative_folding = false}> : (tensor<1x1x4xi32>) -> tensor<1x1x4xsi32>
        %28 = "ttir.reshape"(%21) <{shape = [1 : i32, 4 : i32]}> : (tensor<4x1xi32>) -> tensor<1x4xi32>
        %29 = "ttir.reshape"(%28) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<1x4xi32>) -> tensor<1x1x4xi32>
        %30 = "ttir.typecast"(%29) <{conservative_folding = false}> : (tensor<1x1x4xi32>) -> tensor<1x1x4xsi32>
        %31 = "ttir.concat"(%27, %30) <{dim = 1 : si32}> : (tensor<1x1x4xsi32>, tensor<1x1x4xsi32>) -> tensor<1x2x4xsi32>
        %32 = "ttir.reshape"(%23) <{shape = [1 : i32, 4 : i32]}> : (tensor<4xf32>) -> tensor<1x4xf32>
        %33 = "ttir.rows_scatter"(%24, %31, %32) <{column = true, reduce = #ttcore.reduce_type<sum>, sizes = array<i64: 21, 31>, windows = array<i64: 1, 1>}> : (tensor<1x21x31xf32>, tensor<1x2x4xsi32>, tensor<1x4xf32>) -> tensor<1x21x31xf32>
        %34 = "ttir.reshape"(%33) <{shape = [21 : i32, 31 : i32]}> : (tensor<1x21x31xf32>) -> tensor<21x31xf32>
        %35 = "ttir.slice_static"(%arg2) <{begins = [0 : i32], ends = [3 : i32], step = [1 : i32]}> : (tensor<4xi32>) -> tensor<3xi32>
        %36 = "ttir.broadcast"(%9) <{broadcast_dimensions = array<i64: 3>}> : (tensor<1xi32>) -> tensor<3xi32>
        %37 = "ttir.lt"(%35, %36) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
        %38 = "ttir.broadcast"(%12) <{broadcast_dimensions = array<i64: 3>}> : (tensor<1xi32>) -> tensor<3xi32>
        %39 = "ttir.add"(%35, %38) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
        %40 = "ttir.where"(%37, %39, %35) : (tensor<3xi1>, tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
        %41 = "ttir.reshape"(%40) <{shape = [3 : i32, 1 : i32]}> : (tensor<3xi32>) -> tensor<3x1xi32>
        %42 = "ttir.reshape"(%8) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %43 = "ttir.broadcast"(%42) <{broadcast_dimensions = array<i64: 3, 1>}> : (tensor<1x1xi32>) -> tensor<3x1xi32>
        %44 = "ttir.reshape"(%5) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1xf32>
        %45 = "ttir.broadcast"(%44) <{broadcast_dimensions = array<i64: 3, 5>}> : (tensor<1x1xf32>) -> tensor<3x5xf32>
        %46 = "ttir.reshape"(%41) <{shape = [1 : i32, 3 : i32]}> : (tensor<3x1xi32>) -> tensor<1x3xi32>
        %47 = "ttir.reshape"(%46) <{shape = [1 : i32, 1 : i32, 3 : i32]}> : (tensor<1x3xi32>) -> tensor<1x1x3xi32>
        %48 = "ttir.typecast"(%47) <{conservative_folding = false}> : (tensor<1x1x3xi32>) -> tensor<1x1x3xsi32>
        %49 = "ttir.reshape"(%43) <{shape = [1 : i32, 3 : i32]}> : (tensor<3x1xi32>) -> tensor<1x3xi32>
        %50 = "ttir.reshape"(%49) <{shape = [1 : i32, 1 : i32, 3 : i32]}> : (tensor<1x3xi32>) -> tensor<1x1x3xi32>
        %51 = "ttir.typecast"(%50) <{conservative_folding = false}> : (tensor<1x1x3xi32>) -> tensor<1x1x3xsi32>
        %52 = "ttir.concat"(%48, %51) <{dim = 1 : si32}> : (tensor<1x1x3xsi32>, tensor<1x1x3xsi32>) -> tensor<1x2x3xsi32>
        %53 = "ttir.reshape"(%45) <{shape = [1 : i32, 15 : i32]}> : (tensor<3x5xf32>) -> tensor<1x15xf32>
        %54 = "ttir.rows_scatter"(%24, %52, %53) <{column = true, reduce = #ttcore.reduce_type<prod>, sizes = array<i64: 21, 31>, windows = array<i64: 1, 5>}> : (tensor<1x21x31xf32>, tensor<1x2x3xsi32>, tensor<1x15xf32>) -> tensor<1x21x31xf32>
        %55 = "ttir.reshape"(%54) <{shape = [21 : i32, 31 : i32]}> : (tensor<1x21x31xf32>) -> tensor<21x31xf32>
        %56 = "ttir.eq"(%4, %8) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %57 = "ttir.where"(%56, %0, %4) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %58 = "ttir.reshape"(%57) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %59 = "ttir.broadcast"(%58) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %60 = "ttir.remainder"(%arg2, %59) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %61 = "ttir.ne"(%60, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %62 = "ttir.lt"(%60, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %63 = "ttir.lt"(%57, %8) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %64 = "ttir.reshape"(%63) <{shape = [1 : i32]}> : (tensor<i1>) -> tensor<1xi1>
        %65 = "ttir.broadcast"(%64) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi1>) -> tensor<4xi1>
        %66 = "ttir.ne"(%62, %65) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        %67 = "ttir.logical_and"(%66, %61) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        %68 = "ttir.add"(%60, %59) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %69 = "ttir.where"(%67, %68, %60) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %70 = "ttir.eq"(%3, %8) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %71 = "ttir.where"(%70, %0, %3) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %72 = "ttir.reshape"(%71) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %73 = "ttir.broadcast"(%72) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %74 = "ttir.remainder"(%arg2, %73) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %75 = "ttir.ne"(%74, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %76 = "ttir.lt"(%74, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %77 = "ttir.lt"(%71, %8) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %78 = "ttir.reshape"(%77) <{shape = [1 : i32]}> : (tensor<i1>) -> tensor<1xi1>
        %79 = "ttir.broadcast"(%78) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi1>) -> tensor<4xi1>
        %80 = "ttir.ne"(%76, %79) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        %81 = "ttir.logical_and"(%80, %75) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        %82 = "ttir.add"(%74, %73) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %83 = "ttir.where"(%81, %82, %74) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %84 = "ttir.lt"(%69, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %85 = "ttir.reshape"(%4) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %86 = "ttir.broadcast"(%85) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %87 = "ttir.add"(%69, %86) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %88 = "ttir.where"(%84, %87, %69) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %89 = "ttir.lt"(%83, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %90 = "ttir.reshape"(%3) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %91 = "ttir.broadcast"(%90) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %92 = "ttir.add"(%83, %91) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %93 = "ttir.where"(%89, %92, %83) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %94 = "ttir.reshape"(%88) <{shape = [4 : i32, 1 : i32]}> : (tensor<4xi32>) -> tensor<4x1xi32>
        %95 = "ttir.reshape"(%93) <{shape = [4 : i32, 1 : i32]}> : (tensor<4xi32>) -> tensor<4x1xi32>
        %96 = "ttir.reshape"(%2) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1xf32>
        %97 = "ttir.broadcast"(%96) <{broadcast_dimensions = array<i64: 4, 7>}> : (tensor<1x1xf32>) -> tensor<4x7xf32>
        %98 = "ttir.reshape"(%arg1) <{shape = [1 : i32, 15 : i32, 7 : i32]}> : (tensor<3x5x7xf32>) -> tensor<1x15x7xf32>
        %99 = "ttir.reshape"(%94) <{shape = [1 : i32, 4 : i32]}> : (tensor<4x1xi32>) -> tensor<1x4xi32>
        %100 = "ttir.reshape"(%99) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<1x4xi32>) -> tensor<1x1x4xi32>
        %101 = "ttir.typecast"(%100) <{conservative_folding = false}> : (tensor<1x1x4xi32>) -> tensor<1x1x4xsi32>
        %102 = "ttir.reshape"(%95) <{shape = [1 : i32, 4 : i32]}> : (tensor<4x1xi32>) -> tensor<1x4xi32>
        %103 = "ttir.reshape"(%102) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<1x4xi32>) -> tensor<1x1x4xi32>
        %104 = "ttir.typecast"(%103) <{conservative_folding = false}> : (tensor<1x1x4xi32>) -> tensor<1x1x4xsi32>
        %105 = "ttir.concat"(%101, %104) <{dim = 1 : si32}> : (tensor<1x1x4xsi32>, tensor<1x1x4xsi32>) -> tensor<1x2x4xsi32>
        %106 = "ttir.reshape"(%97) <{shape = [1 : i32, 4 : i32, 7 : i32]}> : (tensor<4x7xf32>) -> tensor<1x4x7xf32>
        %107 = "ttir.rows_scatter"(%98, %105, %106) <{column = false, reduce = #ttcore.reduce_type<min>, sizes = array<i64: 3, 5>, windows = array<i64: 1, 1>}> : (tensor<1x15x7xf32>, tensor<1x2x4xsi32>, tensor<1x4x7xf32>) -> tensor<1x15x7xf32>
        %108 = "ttir.reshape"(%107) <{shape = [3 : i32, 5 : i32, 7 : i32]}> : (tensor<1x15x7xf32>) -> tensor<3x5x7xf32>
        %109 = "ttir.eq"(%1, %8) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %110 = "ttir.where"(%109, %0, %1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %111 = "ttir.reshape"(%110) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %112 = "ttir.broadcast"(%111) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %113 = "ttir.remainder"(%arg2, %112) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %114 = "ttir.ne"(%113, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %115 = "ttir.lt"(%113, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %116 = "ttir.lt"(%110, %8) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %117 = "ttir.reshape"(%116) <{shape = [1 : i32]}> : (tensor<i1>) -> tensor<1xi1>
        %118 = "ttir.broadcast"(%117) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi1>) -> tensor<4xi1>
        %119 = "ttir.ne"(%115, %118) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        %120 = "ttir.logical_and"(%119, %114) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        %121 = "ttir.add"(%113, %112) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %122 = "ttir.where"(%120, %121, %113) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %123 = "ttir.lt"(%122, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %124 = "ttir.reshape"(%1) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %125 = "ttir.broadcast"(%124) <{broadcast_dimensions = array<i64: 4>}> : (tensor<1xi32>) -> tensor<4xi32>
        %126 = "ttir.add"(%122, %125) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %127 = "ttir.where"(%123, %126, %122) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %128 = "ttir.reshape"(%127) <{shape = [4 : i32, 1 : i32]}> : (tensor<4xi32>) -> tensor<4x1xi32>
        %129 = "ttir.reshape"(%128) <{shape = [1 : i32, 4 : i32]}> : (tensor<4x1xi32>) -> tensor<1x4xi32>
        %130 = "ttir.reshape"(%129) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<1x4xi32>) -> tensor<1x1x4xi32>
        %131 = "ttir.typecast"(%130) <{conservative_folding = false}> : (tensor<1x1x4xi32>) -> tensor<1x1x4xsi32>
        %132 = "ttir.concat"(%101, %131) <{dim = 1 : si32}> : (tensor<1x1x4xsi32>, tensor<1x1x4xsi32>) -> tensor<1x2x4xsi32>
        %133 = "ttir.slice_static"(%132) <{begins = [0 : i32, 0 : i32, 0 : i32], ends = [1 : i32, 1 : i32, 4 : i32], step = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<1x2x4xsi32>) -> tensor<1x1x4xsi32>
        %134 = "ttir.full"() <{fill_value = 0 : i32, shape = array<i32: 1, 1, 4>}> : () -> tensor<1x1x4xsi32>
        %135 = "ttir.slice_static"(%132) <{begins = [0 : i32, 1 : i32, 0 : i32], ends = [1 : i32, 2 : i32, 4 : i32], step = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<1x2x4xsi32>) -> tensor<1x1x4xsi32>
        %136 = "ttir.concat"(%133, %134, %135) <{dim = 1 : si32}> : (tensor<1x1x4xsi32>, tensor<1x1x4xsi32>, tensor<1x1x4xsi32>) -> tensor<1x3x4xsi32>
        %137 = "ttir.rows_gather"(%98, %136) <{column = true, fill_out_of_bounds = false, sizes = array<i64: 3, 5, 7>, windows = array<i64: 1, 5, 1>}> : (tensor<1x15x7xf32>, tensor<1x3x4xsi32>) -> tensor<1x20xf32>
        %138 = "ttir.reshape"(%137) <{shape = [4 : i32, 5 : i32]}> : (tensor<1x20xf32>) -> tensor<4x5xf32>
        %139 = "ttir.reshape"(%arg2) <{shape = [4 : i32, 1 : i32]}> : (tensor<4xi32>) -> tensor<4x1xi32>
        %140 = "ttir.reshape"(%57) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %141 = "ttir.broadcast"(%140) <{broadcast_dimensions = array<i64: 4, 1>}> : (tensor<1x1xi32>) -> tensor<4x1xi32>
        %142 = "ttir.remainder"(%139, %141) : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
        %143 = "ttir.broadcast"(%42) <{broadcast_dimensions = array<i64: 4, 1>}> : (tensor<1x1xi32>) -> tensor<4x1xi32>
        %144 = "ttir.ne"(%142, %143) : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
        %145 = "ttir.lt"(%142, %143) : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
        %146 = "ttir.reshape"(%63) <{shape = [1 : i32, 1 : i32]}> : (tensor<i1>) -> tensor<1x1xi1>
        %147 = "ttir.broadcast"(%146) <{broadcast_dimensions = array<i64: 4, 1>}> : (tensor<1x1xi1>) -> tensor<4x1xi1>
        %148 = "ttir.ne"(%145, %147) : (tensor<4x1xi1>, tensor<4x1xi1>) -> tensor<4x1xi1>
        %149 = "ttir.logical_and"(%148, %144) : (tensor<4x1xi1>, tensor<4x1xi1>) -> tensor<4x1xi1>
        %150 = "ttir.add"(%142, %141) : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
        %151 = "ttir.where"(%149, %150, %142) : (tensor<4x1xi1>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
        %152 = "ttir.reshape"(%arg2) <{shape = [1 : i32, 4 : i32]}> : (tensor<4xi32>) -> tensor<1x4xi32>
        %153 = "ttir.reshape"(%71) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %154 = "ttir.broadcast"(%153) <{broadcast_dimensions = array<i64: 1, 4>}> : (tensor<1x1xi32>) -> tensor<1x4xi32>
        %155 = "ttir.remainder"(%152, %154) : (tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi32>
        %156 = "ttir.broadcast"(%42) <{broadcast_dimensions = array<i64: 1, 4>}> : (tensor<1x1xi32>) -> tensor<1x4xi32>
        %157 = "ttir.ne"(%155, %156) : (tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi1>
        %158 = "ttir.lt"(%155, %156) : (tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi1>
        %159 = "ttir.reshape"(%77) <{shape = [1 : i32, 1 : i32]}> : (tensor<i1>) -> tensor<1x1xi1>
        %160 = "ttir.broadcast"(%159) <{broadcast_dimensions = array<i64: 1, 4>}> : (tensor<1x1xi1>) -> tensor<1x4xi1>
        %161 = "ttir.ne"(%158, %160) : (tensor<1x4xi1>, tensor<1x4xi1>) -> tensor<1x4xi1>
        %162 = "ttir.logical_and"(%161, %157) : (tensor<1x4xi1>, tensor<1x4xi1>) -> tensor<1x4xi1>
        %163 = "ttir.add"(%155, %154) : (tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi32>
        %164 = "ttir.where"(%162, %163, %155) : (tensor<1x4xi1>, tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi32>
        %165 = "ttir.lt"(%151, %143) : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
        %166 = "ttir.reshape"(%4) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %167 = "ttir.broadcast"(%166) <{broadcast_dimensions = array<i64: 4, 1>}> : (tensor<1x1xi32>) -> tensor<4x1xi32>
        %168 = "ttir.add"(%151, %167) : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
        %169 = "ttir.where"(%165, %168, %151) : (tensor<4x1xi1>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
        %170 = "ttir.lt"(%164, %156) : (tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi1>
        %171 = "ttir.reshape"(%3) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %172 = "ttir.broadcast"(%171) <{broadcast_dimensions = array<i64: 1, 4>}> : (tensor<1x1xi32>) -> tensor<1x4xi32>
        %173 = "ttir.add"(%164, %172) : (tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi32>
        %174 = "ttir.where"(%170, %173, %164) : (tensor<1x4xi1>, tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi32>
        %175 = "ttir.reshape"(%169) <{shape = [4 : i32, 1 : i32, 1 : i32]}> : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
        %176 = "ttir.broadcast"(%175) <{broadcast_dimensions = array<i64: 1, 4, 1>}> : (tensor<4x1x1xi32>) -> tensor<4x4x1xi32>
        %177 = "ttir.reshape"(%174) <{shape = [1 : i32, 4 : i32, 1 : i32]}> : (tensor<1x4xi32>) -> tensor<1x4x1xi32>
        %178 = "ttir.broadcast"(%177) <{broadcast_dimensions = array<i64: 4, 1, 1>}> : (tensor<1x4x1xi32>) -> tensor<4x4x1xi32>
        %179 = "ttir.reshape"(%176) <{shape = [1 : i32, 4 : i32, 4 : i32]}> : (tensor<4x4x1xi32>) -> tensor<1x4x4xi32>
        %180 = "ttir.reshape"(%179) <{shape = [1 : i32, 1 : i32, 16 : i32]}> : (tensor<1x4x4xi32>) -> tensor<1x1x16xi32>
        %181 = "ttir.typecast"(%180) <{conservative_folding = false}> : (tensor<1x1x16xi32>) -> tensor<1x1x16xsi32>
        %182 = "ttir.reshape"(%178) <{shape = [1 : i32, 4 : i32, 4 : i32]}> : (tensor<4x4x1xi32>) -> tensor<1x4x4xi32>
        %183 = "ttir.reshape"(%182) <{shape = [1 : i32, 1 : i32, 16 : i32]}> : (tensor<1x4x4xi32>) -> tensor<1x1x16xi32>
        %184 = "ttir.typecast"(%183) <{conservative_folding = false}> : (tensor<1x1x16xi32>) -> tensor<1x1x16xsi32>
        %185 = "ttir.concat"(%181, %184) <{dim = 1 : si32}> : (tensor<1x1x16xsi32>, tensor<1x1x16xsi32>) -> tensor<1x2x16xsi32>
        %186 = "ttir.rows_gather"(%98, %185) <{column = false, fill_out_of_bounds = false, sizes = array<i64: 3, 5>, windows = array<i64: 1, 1>}> : (tensor<1x15x7xf32>, tensor<1x2x16xsi32>) -> tensor<1x16x7xf32>
        %187 = "ttir.reshape"(%186) <{shape = [4 : i32, 4 : i32, 7 : i32]}> : (tensor<1x16x7xf32>) -> tensor<4x4x7xf32>
        return %34, %55, %108, %138, %187 : tensor<21x31xf32>, tensor<21x31xf32>, tensor<3x5x7xf32>, tensor<4x5xf32>, tensor<4x4x7xf32>
      }
    }
  }
}
