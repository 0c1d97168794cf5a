import { startView } from "./run-view.tsx";

// The script of the view that hosts show (MCP Apps): the document that a host is given holds it.

await startView();
