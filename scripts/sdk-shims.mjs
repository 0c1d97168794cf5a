// Replaces the SDK's own file of this name in the bundle, which loads a JSON Schema validator at every start. The SDK
// uses the validator only for answers to questions asked with `elicitInput`, which nothing here calls.
import process from "node:process";

export class DefaultJsonSchemaValidator {
  getValidator() {
    throw new Error("this bundle contains no JSON Schema validator");
  }
}

export { process };
