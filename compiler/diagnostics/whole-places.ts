/**
 * The incremental compiler compiles a text in pieces, most of which are one site. Places in a piece stay correct when the piece
 * moves within the text. This file converts them to places in the whole text.
 */
import { wholeSpan } from '../source/source.ts';
import type { Diagnostic } from './diagnostic.ts';

/** Converts all places of a diagnostic, including those of its fix, to places in the whole text. */
export function withWholePlaces(diagnostic: Diagnostic): Diagnostic {
	const { span, related, fix } = diagnostic;
	return {
		...diagnostic,
		...(span ? { span: wholeSpan(span) } : {}),
		...(related
			? { related: related.map(relatedPlace => ({ ...relatedPlace, span: wholeSpan(relatedPlace.span) })) }
			: {}),
		...(fix ? { fix: { ...fix, edits: fix.edits.map(edit => ({ ...edit, span: wholeSpan(edit.span) })) } } : {}),
	};
}
