// Where the switchboard program is.
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

const NAME = process.platform === "win32" ? "switchboard.exe" : "switchboard";

/** A path to run, or what to tell the human when there is none. */
export type Found = { path: string } | { problem: string };

/** Looks in the documented order; `here` is the folder of this extension. */
export function findBinary(here: string, env: NodeJS.ProcessEnv): Found {
	const named = env.SWITCHBOARD_BIN;
	if (named) {
		return runnable(named) ? { path: named } : { problem: `SWITCHBOARD_BIN names ${named}, which cannot be run; correct it or unset it` };
	}
	const candidates = [recorded(here), join(here, "..", "bin", NAME)];
	for (const folder of (env.PATH ?? "").split(delimiter)) {
		if (isAbsolute(folder)) candidates.push(join(folder, NAME));
	}
	const path = candidates.find((c) => c !== undefined && runnable(c));
	return path ? { path } : { problem: "the switchboard program was not found, so this session is not connected; mend it with: make build (in its checkout), then bin/switchboard pi install" };
}

/** The path that `switchboard pi install` wrote down. */
function recorded(here: string): string | undefined {
	try {
		const { binary } = JSON.parse(readFileSync(join(here, "install.json"), "utf8"));
		return typeof binary === "string" ? binary : undefined;
	} catch {
		return undefined; // a checkout has none
	}
}

function runnable(path: string): boolean {
	try {
		accessSync(path, constants.X_OK);
		return statSync(path).isFile();
	} catch {
		return false;
	}
}
