// In the bundle, this file replaces the SDK's module `@modelcontextprotocol/server/_shims`, which would load a JSON
// Schema validator at each start. The SDK needs that validator only for answers to `elicitInput`, which this server
// never calls.
import process from "node:process";

export class DefaultJsonSchemaValidator {
  getValidator() {
    throw new Error("this bundle contains no JSON Schema validator");
  }
}

export { process };
