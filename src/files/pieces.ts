const PIECE_CHARACTERS = 65_536;

/** Joins short texts to pieces that are large enough for a write each. Bytes pass unchanged. */
export async function* inPieces<Piece extends string | Uint8Array>(
  pieces: AsyncIterable<Piece> | Iterable<Piece>,
): AsyncGenerator<Piece | string> {
  let text = "";
  for await (const piece of pieces) {
    const isText = typeof piece === "string";
    if (isText) text += piece;
    if (text !== "" && (!isText || text.length >= PIECE_CHARACTERS)) {
      yield text;
      text = "";
    }
    if (!isText) yield piece;
  }
  if (text !== "") yield text;
}
