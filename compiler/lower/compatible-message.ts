/** Messages of mistakes in a Compatfile as the compatible server words them, so that what searches for its texts finds them. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { fileAndLine, importChain } from '../syntax/structure-mistake.ts';

/** Said with the place before them instead of behind, where no directive is around. */
const PLACE_FIRST = ['unrecognized directive: ', 'unrecognized global option: '];
const NESTED = 'are you sure your Compatfile structure (nesting and braces) is correct?';

/**
 * The message with the directive or option that it was found in, and where its place goes. Sentences of our own, which
 * the compatible server has none for, stay as they are: they quote with backticks or end with a full stop.
 */
export function compatibleMessage(
	message: string,
	directive: string | undefined,
): { readonly message: string; readonly place?: Diagnostic['place'] } {
	if (message.includes('`') || (message.endsWith('.') && /^[A-Z]/.test(message))) return { message };
	if (directive !== undefined)
		return { message: `parsing compatfile tokens for '${directive}': ${message}`, place: 'behind' };
	const first = PLACE_FIRST.some(text => message.startsWith(text)) && !message.endsWith(NESTED);
	return { message, place: first ? 'before' : 'behind' };
}

/** Puts the place into the message where it is wanted. Done last: only then is the line known for certain. */
export function withPlace(diagnostic: Diagnostic): Diagnostic {
	const { place, ...rest } = diagnostic;
	const { message, span } = rest;
	if (place === undefined || !span) return diagnostic;
	if (place === 'before') return { ...rest, message: `${fileAndLine(span)}: ${message}` };
	return { ...rest, message: `${message}, at ${fileAndLine(span)}${importChain(span)}` };
}
