/**
 * Code shared by sites that are built together: a thousand hosts with the same routes run one pipeline, which stays in the
 * processor's cache where a thousand copies would not.
 */
import { hash } from 'node:crypto';
import type { Step } from '../document/document.ts';
import type { Handler } from '../exchange/handler.ts';
import type { SharedBranchTables } from './branch-table.ts';

/** Maximum length of serialized steps that are stored verbatim for comparison; longer texts are hashed. */
const MAX_VERBATIM_LENGTH = 128;

/** The code shared during one build: filled while sites are built, and discarded afterwards. */
export class SharedCode {
	readonly tables: SharedBranchTables = new Map();
	readonly #pipelines = new Map<string, Handler>();

	/**
	 * Returns the existing pipeline for equal steps, or compiles one. `isSiteSpecific` is true if other sites
	 * must not share the result.
	 */
	pipeline(steps: readonly Step[], compile: () => { handler: Handler; isSiteSpecific: boolean }): Handler {
		const text = JSON.stringify(steps);
		const key = text.length <= MAX_VERBATIM_LENGTH ? text : hash('sha256', text, 'base64');
		const cachedHandler = this.#pipelines.get(key);
		if (cachedHandler) return cachedHandler;
		const { handler, isSiteSpecific } = compile();
		if (!isSiteSpecific) this.#pipelines.set(key, handler);
		return handler;
	}
}
