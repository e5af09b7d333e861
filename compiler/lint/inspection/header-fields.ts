/** Lists the header fields that a document sets or removes, whichever handlers do it. */
import type { EditedMessage } from '../../modules/contract/traits.ts';

import { traitsOf } from './answering.ts';
import type { WalkedDocument, WalkedStep } from './walk-document.ts';

export interface FieldEdit {
	readonly name: string;
	/** The value that is set; '' for a removal. */
	readonly value: string;
	readonly removes: boolean;
	readonly pointer: string;
	readonly of: WalkedStep;
	readonly on: EditedMessage;
}

interface Edits {
	readonly add?: readonly { readonly name: string; readonly value: string }[];
	readonly set?: readonly { readonly name: string; readonly value: string }[];
	readonly default?: readonly { readonly name: string; readonly value: string }[];
	readonly delete?: readonly string[];
}

/** Yields all edits of header fields, in document order. */
export function* editsOf(walked: WalkedDocument): Generator<FieldEdit> {
	for (const of of walked.steps) {
		for (const [field, on] of Object.entries(traitsOf(of.step).fieldEdits ?? {})) {
			const edits = of.step[field] as Edits | undefined;
			if (typeof edits !== 'object' || edits === null) continue;
			for (const kind of ['add', 'set', 'default'] as const) {
				if (!Array.isArray(edits[kind])) continue;
				for (const [index, { name, value }] of edits[kind].entries()) {
					yield { name, value, removes: false, pointer: `${of.pointer}/${field}/${kind}/${index}`, of, on };
				}
			}
			if (!Array.isArray(edits.delete)) continue;
			for (const [index, name] of edits.delete.entries()) {
				yield { name, value: '', removes: true, pointer: `${of.pointer}/${field}/delete/${index}`, of, on };
			}
		}
	}
}

const OF_CACHES = /^(?:cache-control|cdn-cache-control|surrogate-control)$/i;

/** Lifetime in seconds from which caching counts as long-lived. */
const LONG = 86_400;

/** Reports whether a field makes caches keep a response for a long time. */
export function isLongLivedCaching({ name, value }: FieldEdit): boolean {
	if (!OF_CACHES.test(name) || /no-store|no-cache|max-age=0\b/i.test(value)) return false;
	if (/\bimmutable\b/i.test(value)) return true;
	return [...value.matchAll(/\b(?:s-maxage|max-age)=(\d+)/gi)].some(([, seconds]) => Number(seconds) >= LONG);
}
