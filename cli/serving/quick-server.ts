/** Servers described by flags instead of a configuration: `respond`, `file-server`, `reverse-proxy`. */
import type { Document, Site } from '../../compiler/document/document.ts';
import { isFieldValue, isToken } from '../../compiler/exchange/field-syntax.ts';
import { quoteWord } from '../command/arguments.ts';
import { CommandFailure } from '../command/command.ts';
import { print } from '../command/terminal.ts';

export interface HeaderField {
	readonly name: string;
	readonly value: string;
}

/** Parses `Field: value`. @throws {@link CommandFailure} */
export function parseHeaderField(text: string): HeaderField {
	const colon = text.indexOf(':');
	const name = text.slice(0, colon);
	const value = text.slice(colon + 1).trim();
	if (colon < 1 || !isToken(name) || !isFieldValue(value)) {
		throw new CommandFailure(`${quoteWord(text)} is not a header field; write Field: value.`);
	}
	return { name, value };
}

/**
 * Converts header fields to header edits. A field given once replaces existing values; a field given more than once is appended.
 */
export function toHeaderEdits(fields: readonly HeaderField[]): { add?: HeaderField[]; set?: HeaderField[] } {
	const isRepeated = (field: HeaderField): boolean =>
		fields.filter(({ name }) => name.toLowerCase() === field.name.toLowerCase()).length > 1;
	const add = fields.filter(isRepeated);
	const set = fields.filter(field => !isRepeated(field));
	return { ...(add.length > 0 ? { add } : {}), ...(set.length > 0 ? { set } : {}) };
}

/** Parses `host:port`, `[v6]:port`, `:port` or a port into a site that serves all hosts there. @throws {@link CommandFailure} */
export function siteListeningAt(addressText: string): Pick<Site, 'addresses' | 'bind'> {
	const match = /^(?:(?:\[([0-9A-Fa-f:.%]+)\]|([^\s:/[\]]*)):)?(\d{1,5})$/.exec(addressText);
	const port = Number(match?.[3]);
	if (!match || port > 65_535) {
		throw new CommandFailure(`${quoteWord(addressText)} is not an address to listen on; give host:port or :port.`);
	}
	const host = match[1] ?? match[2] ?? '';
	return { addresses: [`http://:${port}`], ...(host === '' ? {} : { bind: [host] }) };
}

/** Serves a document until stopped, and prints the addresses. */
export async function serveDocument(document: Document, verbose: boolean): Promise<number> {
	const { serve } = await import('./serve.ts');
	return serve({
		input: { format: 'json', text: JSON.stringify(document), name: 'The command line' },
		madeOfFlags: true,
		verbose,
		onReady: ({ listeners }) => {
			for (const { address, port, scheme } of listeners) {
				print(`Listening on ${scheme}://${address.includes(':') ? `[${address}]` : address}:${port}\n`);
			}
		},
	});
}
