/**
 * Code shared by sites that are built together. A thousand hosts with the same routes run one pipeline, which stays in the
 * processor's cache, while a thousand copies would not.
 */
import { hash } from 'node:crypto';
import type { Step } from '../document/document.ts';
import type { Handler } from '../exchange/handler.ts';
import type { SharedBranchTables } from './branch-table.ts';

/** Maximum length of serialized steps that serve as a key themselves. Longer texts are hashed. */
const MAX_VERBATIM_CHARS = 128;

/** The code that is shared during one build. It is filled while sites are built, and discarded afterwards. */
export class SharedCode {
	readonly branchTables: SharedBranchTables = new Map();
	readonly #pipelinesBySteps = new Map<string, Handler>();

	/**
	 * Returns the pipeline for equal steps if there is one; otherwise compiles the steps. In the result of `compile`,
	 * `isSiteSpecific` is true if other sites must not share the pipeline.
	 */
	getOrCompile(steps: readonly Step[], compile: () => { handler: Handler; isSiteSpecific: boolean }): Handler {
		const stepsJson = JSON.stringify(steps);
		const key = stepsJson.length <= MAX_VERBATIM_CHARS ? stepsJson : hash('sha256', stepsJson, 'base64');
		const cachedHandler = this.#pipelinesBySteps.get(key);
		if (cachedHandler) return cachedHandler;
		const { handler, isSiteSpecific } = compile();
		if (!isSiteSpecific) this.#pipelinesBySteps.set(key, handler);
		return handler;
	}
}
