// The models by name.

const MODELS = {
  grid: gridModel,
  ttnn: ttnnModel,
  ttnn_document: documentModel,
  metal: metalModel,
  xla: xlaModel,
  sophon: sophonModel,
};

// Returns the layout of parameters; throws a `LayoutError` with the wrong field if they are invalid.
const layoutOf = (parameters, facts) => MODELS[parameters.model](parameters, facts);
