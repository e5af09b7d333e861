/**
 * Code shared by sites that are built together: a thousand hosts with the same routes run one pipeline, which stays in the
 * processor's cache where a thousand copies would not.
 */
import { hash } from 'node:crypto';
import type { Step } from '../document/document.ts';
import type { Handler } from '../exchange/handler.ts';
import type { SharedBranchTables } from './branch-table.ts';

/** Maximum characters of steps stored verbatim for comparison; longer ones are hashed. */
const SHORT = 128;

/** The code shared during one build: filled while sites are built, and discarded afterwards. */
export class SharedCode {
	readonly tables: SharedBranchTables = new Map();
	readonly #pipelines = new Map<string, Handler>();

	/** Returns the existing pipeline for equal steps, or compiles one. `own` is true if other sites must not share the result. */
	pipeline(steps: readonly Step[], compile: () => { handler: Handler; own: boolean }): Handler {
		const text = JSON.stringify(steps);
		const key = text.length <= SHORT ? text : hash('sha256', text, 'base64');
		const known = this.#pipelines.get(key);
		if (known) return known;
		const { handler, own } = compile();
		if (!own) this.#pipelines.set(key, handler);
		return handler;
	}
}
