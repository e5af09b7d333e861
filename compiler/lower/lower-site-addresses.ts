/** Lowers the addresses of a site to the form that the document stores. */
import {
	formatSiteAddress,
	isSiteAddress,
	MAX_ADDRESS_LENGTH,
	parseSiteAddress,
	type SchemePorts,
	usesOtherSchemesPort,
} from '../document/site-address.ts';
import type { Reader } from '../source/reader.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Word } from '../syntax/ast.ts';
import type { Lowering } from './lowering.ts';

/** Lowers addresses. Invalid ones are reported and left out. */
export function lowerAddresses(
	lowering: Lowering,
	words: readonly Word[],
	ports: SchemePorts,
	reader: Reader,
): string[] {
	const addresses: string[] = [];
	const spans: { [index: string]: SourceSpan } = {};
	for (const word of words) {
		const address = lowerAddress(lowering, word, ports, reader);
		if (address === undefined || addresses.includes(address)) continue;
		spans[addresses.length] = word.span;
		addresses.push(address);
	}
	if (words[0]) lowering.environment.origins.remember(addresses, words[0].span, spans);
	return addresses;
}

function lowerAddress(lowering: Lowering, word: Word, ports: SchemePorts, reader: Reader): string | undefined {
	const text = expandEnvironment(lowering, word, reader);
	if (text === undefined) return undefined;
	if (text.trim() === '') {
		lowering.problem('error', 'address/empty', word.span, 'This address is empty.', {
			hint: 'If it comes from an environment variable, that variable is not set.',
		});
		return undefined;
	}
	const parsedAddress = parseSiteAddress(
		lowering.dialect === 'compatfile' ? withoutEmptyPort(lowering, text, word) : text,
	);
	if (!isSiteAddress(parsedAddress)) {
		lowering.problem(
			'error',
			parsedAddress.code,
			word.span,
			lowering.dialect === 'configfile' ? asSentence(parsedAddress.message) : parsedAddress.message,
			parsedAddress.hint === undefined ? {} : { hint: parsedAddress.hint },
		);
		return undefined;
	}
	if (usesOtherSchemesPort(parsedAddress, ports)) {
		const message =
			lowering.dialect === 'configfile'
				? `The scheme and the port of \`${parsedAddress.text}\` contradict each other.`
				: `[${parsedAddress.text}] scheme and port violate convention`;
		const otherScheme = parsedAddress.scheme === 'http' ? 'HTTPS' : 'HTTP';
		lowering.problem('error', 'address/scheme-and-port', word.span, message, {
			hint: `${parsedAddress.port} is the ${otherScheme} port; change the scheme or the port.`,
		});
		return undefined;
	}
	if (parsedAddress.path !== '') {
		const hint = 'Put `handle_path` or a path matcher inside the site.';
		if (lowering.dialect === 'configfile') {
			lowering.problem('error', 'address/path', word.span, 'A site address cannot have a path.', { hint });
			return undefined;
		}
		const message = 'Using a path in a site address is deprecated.';
		lowering.problem('warning', 'address/path', word.span, message, { hint });
	}
	return formatSiteAddress(parsedAddress);
}

/** Removes a colon that no port follows, which is allowed in a Compatfile. */
function withoutEmptyPort(lowering: Lowering, text: string, word: Word): string {
	const withoutColon = text.replace(/(?<=[^:/]):(?=$|\/(?!\/))/, '');
	if (withoutColon === text) return text;
	lowering.problem('warning', 'address/invalid-port', word.span, 'No port follows the colon, so it is the usual one.');
	return withoutColon;
}

function asSentence(message: string): string {
	return `${message[0]!.toUpperCase()}${message.slice(1)}${/[./]$/.test(message) ? '' : '.'}`;
}

/**
 * Replaces `{env.NAME}` in an address during lowering, because the listeners must be known when the configuration is loaded.
 * Returns undefined if the address has another placeholder.
 */
function expandEnvironment(lowering: Lowering, word: Word, reader: Reader): string | undefined {
	// The limit is far above the maximum length of an address, so a text that is cut off here is still reported as too long.
	const writtenText = word.text.slice(0, 2 * MAX_ADDRESS_LENGTH);
	if (!writtenText.includes('{')) return writtenText;
	let hasOnlyEnvironment = true;
	const text = writtenText.replace(/\{([^}]*)\}/g, (placeholder, name: string) => {
		if (name.startsWith('env.')) return reader.env(name.slice('env.'.length)) ?? '';
		hasOnlyEnvironment = false;
		lowering.problem(
			'error',
			'address/placeholder',
			word.span,
			`\`${placeholder}\` cannot be used in a site address.`,
			{
				hint: 'Only `{$NAME}` and `{env.NAME}` are known at load time.',
			},
		);
		return placeholder;
	});
	return hasOnlyEnvironment ? text : undefined;
}
