/** An edit of a header field by a step of the document. */
import type { EditedMessage } from '../../modules/contract/traits.ts';

import { traitsOf } from './answering.ts';
import type { WalkedDocument, WalkedStep } from './walk-document.ts';

export interface FieldEdit {
	readonly name: string;
	/** The value that is set; '' for a removal. */
	readonly value: string;
	readonly isRemoval: boolean;
	/** The field of the step that contains the edit, such as `response`; the list in it, such as `set`; and the edit's index there. */
	readonly place: {
		readonly field: string;
		readonly list: 'add' | 'set' | 'default' | 'delete';
		readonly index: number;
	};
	readonly pointer: string;
	readonly walkedStep: WalkedStep;
	readonly editedMessage: EditedMessage;
}

interface StepEdits {
	readonly add?: readonly { readonly name: string; readonly value: string }[];
	readonly set?: readonly { readonly name: string; readonly value: string }[];
	readonly default?: readonly { readonly name: string; readonly value: string }[];
	readonly delete?: readonly string[];
}

const editsByDocument = new WeakMap<WalkedDocument, readonly FieldEdit[]>();

/** Returns all edits of header fields, in document order. Many rules inspect them, so they are collected only once. */
export function fieldEditsOf(walkedDocument: WalkedDocument): readonly FieldEdit[] {
	let edits = editsByDocument.get(walkedDocument);
	if (!edits) {
		edits = [...collectFieldEdits(walkedDocument)];
		editsByDocument.set(walkedDocument, edits);
	}
	return edits;
}

function* collectFieldEdits(walkedDocument: WalkedDocument): Generator<FieldEdit> {
	for (const walkedStep of walkedDocument.steps) {
		for (const [field, editedMessage] of Object.entries(traitsOf(walkedStep.step).fieldEdits ?? {})) {
			const edits = walkedStep.step[field] as StepEdits | undefined;
			if (typeof edits !== 'object' || edits === null) continue;
			for (const kind of ['add', 'set', 'default'] as const) {
				if (!Array.isArray(edits[kind])) continue;
				for (const [index, { name, value }] of edits[kind].entries()) {
					yield {
						name,
						value,
						isRemoval: false,
						place: { field, list: kind, index },
						pointer: `${walkedStep.pointer}/${field}/${kind}/${index}`,
						walkedStep,
						editedMessage,
					};
				}
			}
			if (!Array.isArray(edits.delete)) continue;
			for (const [index, name] of edits.delete.entries()) {
				yield {
					name,
					value: '',
					isRemoval: true,
					place: { field, list: 'delete', index },
					pointer: `${walkedStep.pointer}/${field}/delete/${index}`,
					walkedStep,
					editedMessage,
				};
			}
		}
	}
}

const CACHE_CONTROL_FIELD = /^(?:cache-control|cdn-cache-control|surrogate-control)$/i;

/** Lifetime in seconds from which on the caching of a response is regarded as long-lived. */
const LONG_LIVED_SECONDS = 86_400;

/** Reports whether a field makes caches keep a response for a long time. */
export function isLongLivedCaching({ name, value }: FieldEdit): boolean {
	if (!CACHE_CONTROL_FIELD.test(name) || /no-store|no-cache|max-age=0\b/i.test(value)) return false;
	if (/\bimmutable\b/i.test(value)) return true;
	return [...value.matchAll(/\b(?:s-maxage|max-age)=(\d+)/gi)].some(
		([, seconds]) => Number(seconds) >= LONG_LIVED_SECONDS,
	);
}
