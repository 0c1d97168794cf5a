import { startView } from "./run-view.tsx";

// The script of the view that hosts show (MCP Apps). The document for the host contains it.

await startView();
