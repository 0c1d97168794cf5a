import * as z from "zod";

// The two formats, written by hand from their published descriptions.

const userConfigField = z.strictObject({
  type: z.enum(["string", "number", "boolean", "directory", "file"]),
  title: z.string().min(1),
  description: z.string().min(1),
  required: z.boolean().optional(),
  default: z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]).optional(),
  multiple: z.boolean().optional(),
  sensitive: z.boolean().optional(),
});

/** The manifest of a bundle (MCPB, manifest_version 0.3), with the fields that we use. */
export const mcpbManifest = z.strictObject({
  manifest_version: z.literal("0.3"),
  name: z.string().regex(/^[a-z0-9-]+$/),
  display_name: z.string().optional(),
  version: z.string().regex(/^\d+\.\d+\.\d+$/),
  description: z.string().min(1),
  author: z.strictObject({ name: z.string(), email: z.email().optional(), url: z.url().optional() }),
  license: z.string().optional(),
  keywords: z.array(z.string()).optional(),
  server: z.strictObject({
    type: z.enum(["node", "python", "binary"]),
    entry_point: z.string(),
    mcp_config: z.strictObject({
      command: z.string(),
      args: z.array(z.string()),
      env: z.record(z.string(), z.string()),
    }),
  }),
  tools: z.array(z.strictObject({ name: z.string(), description: z.string() })),
  prompts: z
    .array(
      z.strictObject({
        name: z.string(),
        description: z.string().optional(),
        arguments: z.array(z.string()).optional(),
        text: z.string(),
      }),
    )
    .optional(),
  compatibility: z.strictObject({
    platforms: z.array(z.enum(["darwin", "win32", "linux"])),
    runtimes: z.strictObject({ node: z.string() }),
  }),
  user_config: z.record(z.string(), userConfigField),
});

/** The entry in the registry of MCP servers (schema of 2025-12-11), with the fields that we use. */
export const registryEntry = z.strictObject({
  $schema: z.literal("https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  version: z
    .string()
    .max(255)
    .regex(/^\d+\.\d+\.\d+$/),
  packages: z.array(
    z.strictObject({
      registryType: z.literal("npm"),
      identifier: z.string(),
      version: z.string().regex(/^\d+\.\d+\.\d+$/),
      runtimeHint: z.string(),
      transport: z.strictObject({ type: z.literal("stdio") }),
      environmentVariables: z.array(
        z.strictObject({
          name: z.string(),
          description: z.string(),
          isRequired: z.boolean(),
          isSecret: z.boolean(),
          format: z.enum(["string", "number", "boolean", "filepath"]),
          choices: z.array(z.string()).optional(),
          default: z.string().optional(),
        }),
      ),
    }),
  ),
});
