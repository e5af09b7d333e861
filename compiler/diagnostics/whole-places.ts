/** Converts places in pieces of a text to places in the whole text, which stay correct when the pieces move. */
import { wholeSpan } from '../source/source.ts';
import type { Diagnostic } from './diagnostic.ts';

/** Returns the diagnostic with places in the whole files. */
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
