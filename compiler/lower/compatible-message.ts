/** Words the mistakes in a Compatfile as the compatible server does, so that users can search for its messages. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { fileAndLine, importChain } from '../syntax/structure-mistake.ts';

/** Messages outside of any directive that begin with their place instead of ending with it. */
const PLACE_FIRST = ['unrecognized directive: ', 'unrecognized global option: '];
const NESTED = 'are you sure your Compatfile structure (nesting and braces) is correct?';

/**
 * Adds the directive or option in which a mistake was found, and determines where its place goes. Messages for which the
 * compatible server has no counterpart contain backticks or end with a period; they are left unchanged.
 */
export function withCompatibleMessage(
	message: string,
	directive: string | undefined,
): { readonly message: string; readonly place?: Diagnostic['place'] } {
	if (message.includes('`') || (message.endsWith('.') && /^[A-Z]/.test(message))) return { message };
	if (directive !== undefined)
		return { message: `parsing compatfile tokens for '${directive}': ${message}`, place: 'behind' };
	const first = PLACE_FIRST.some(text => message.startsWith(text)) && !message.endsWith(NESTED);
	return { message, place: first ? 'before' : 'behind' };
}

/** Inserts the place into the message. This is done last, because only then is the line final. */
export function insertPlace(diagnostic: Diagnostic): Diagnostic {
	const { place, ...rest } = diagnostic;
	const { message, span } = rest;
	if (place === undefined || !span) return diagnostic;
	if (place === 'before') return { ...rest, message: `${fileAndLine(span)}: ${message}` };
	return { ...rest, message: `${message}, at ${fileAndLine(span)}${importChain(span)}` };
}
