/** The registry of issuers. */

import type { Schema } from '../../../document/schema-type.ts';
import type { IssuerSettings } from '../../../document/tls-settings.ts';
import { unavailableMessage } from '../../../lower/context/unavailable.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { acme, FALLBACK_ACME_DIRECTORY } from './acme.ts';
import { internal } from './internal.ts';
import type { IssuerModule } from './issuer-module.ts';

/** All issuers, in the order of the manual. */
export const issuers: readonly IssuerModule[] = [acme, internal];

export const ISSUER_SCHEMA: Schema = {
	type: 'object',
	discriminator: { propertyName: 'issuer' },
	required: ['issuer'],
	oneOf: issuers.map(({ id, summary, schema }) => ({
		type: 'object',
		description: summary,
		properties: { issuer: { const: id }, '@id': { type: 'string' }, ...schema.properties },
		required: ['issuer', ...(schema.required ?? [])],
		additionalProperties: false,
	})),
};

/**
 * Lowers `ISSUER argument… { … }`. `args` begins with the issuer's name; `line` has the block. Returns undefined after
 * reporting a mistake.
 */
export function lowerIssuer(args: readonly Word[], line: Line, cx: LowerContext): IssuerSettings | undefined {
	const [issuerWord, ...argumentWords] = args;
	if (!issuerWord) {
		cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'issuer <issuer> [<argument>…] [{ … }]');
		return undefined;
	}
	if (issuerWord.text === 'zerossl') {
		cx.problem('error', 'issuer/unavailable', issuerWord.span, unavailableMessage('issuer zerossl'), {
			hint: `Use the ACME interface of that authority: \`issuer acme ${FALLBACK_ACME_DIRECTORY}\`.`,
		});
		return undefined;
	}
	const issuerId = cx.oneOf(
		issuerWord,
		issuers.map(module => module.id),
		'issuer of this build',
	);
	const issuerModule = issuers.find(issuer => issuer.id === issuerId);
	return (
		issuerModule && cx.origin({ issuer: issuerModule.id, ...issuerModule.lower(argumentWords, line, cx) }, line.span)
	);
}
