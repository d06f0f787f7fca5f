// The models by name.

const MODELS = {
  grid: gridModel,
  ttnn: ttnnModel,
  ttnn_document: documentModel,
  metal: metalModel,
  xla: xlaModel,
  sophon: sophonModel,
};

// The layout of parameters; `LayoutError` says what is wrong with them and in which field.
const layoutOf = (parameters, facts) => MODELS[parameters.model](parameters, facts);
