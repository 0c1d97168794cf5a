const PIECE_CHARACTERS = 65_536;

/** Joins short texts to pieces that are worth a write each. */
export async function* inPieces(texts: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  let piece = "";
  for await (const text of texts) {
    piece += text;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
  }
  if (piece !== "") yield piece;
}
