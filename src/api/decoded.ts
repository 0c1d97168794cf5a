import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";

type Decoder = (body: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

const wrapped: Decoder = promisify(inflate);
const bare: Decoder = promisify(inflateRaw);

/** By the name of the encoding. Some servers send `deflate` without the two bytes of zlib that belong before it. */
const DECODERS: Readonly<Record<string, Decoder>> = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: (body, options) => (((body[0] ?? 0) & 0x0f) === 8 ? wrapped : bare)(body, options),
  br: promisify(brotliDecompress),
  identity: async (body) => body,
};

/** The body is compressed in a way that cannot be read. */
export class EncodingError extends Error {
  readonly code = "ENCODING";
}

/**
 * A body that was compressed on the way, decompressed: nobody asks for that, but gateways do it all the same. `encodings`
 * is the header Content-Encoding. Throws where the body is broken, compressed in another way, or has more than `largest`
 * bytes.
 */
export async function decoded(body: Buffer, encodings: string, largest: number): Promise<Buffer> {
  let left = body;
  if (body.length === 0) return body;
  for (const encoding of encodings
    .toLowerCase()
    .split(/\s*,\s*/)
    .toReversed()) {
    const decode = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
    if (decode === undefined) throw new EncodingError();
    try {
      left = await decode(left, { maxOutputLength: largest });
    } catch (cause) {
      const isTooLarge = cause instanceof RangeError;
      throw isTooLarge ? cause : new EncodingError("the body is broken", { cause });
    }
  }
  return left;
}
