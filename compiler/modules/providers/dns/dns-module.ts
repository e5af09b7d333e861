/**
 * The definition of a DNS provider in the compiler: its name, schema and manual page, derived from a table of its settings.
 */

import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';

/** A DNS provider in a document: `{"provider":"cloudflare",…}`. */
export interface DnsProviderSettings {
	readonly provider: string;
	readonly [setting: string]: unknown;
}

/** One setting of a provider. */
export interface DnsSetting {
	/** The property's key in the document, and its name in both dialects. */
	readonly name: string;
	readonly description: string;
	readonly required?: boolean;
	/** Redacted when a document is read: completely, or only the secrets in a URL or an argument. */
	readonly secret?: true | 'url' | 'argument';
	/** True if the setting takes all remaining words. */
	readonly list?: boolean;
	readonly pattern?: string;
	/** Alternative names of the setting. */
	readonly also?: readonly string[];
}

/** A DNS provider; the module ID is `dns.providers.<id>`. */
export interface DnsModule {
	/** `provider` in the document and name in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	readonly settings: readonly DnsSetting[];
	/** Names of the settings that the words after the provider's name fill, in order. */
	readonly positions: readonly string[];
}

/** Returns the schema of the properties in addition to `provider`. */
export function dnsSettingProperties({ settings }: DnsModule): { readonly [name: string]: Schema } {
	return Object.fromEntries(
		settings.map(({ name, description, secret, list, pattern }) => {
			const text: Schema = { type: 'string', minLength: 1, ...(pattern === undefined ? {} : { pattern }) };
			const mark = secret === undefined ? {} : { secret };
			return [name, { ...(list ? { type: 'array', items: { ...text, ...mark } } : { ...text, ...mark }), description }];
		}),
	);
}

/** Lowers the words after a provider's name and its block. */
export function lowerDnsSettings(
	module: DnsModule,
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
): { readonly [setting: string]: unknown } {
	const found: { [setting: string]: unknown } = {};
	const byName = new Map(module.settings.map(setting => [setting.name, setting]));
	const take = (setting: DnsSetting, words: readonly Word[], at: Line): void => {
		if (Object.hasOwn(found, setting.name)) {
			cx.problem('error', 'dns/given-twice', at.words[0]!.span, `\`${setting.name}\` is given more than once.`);
			return;
		}
		if (setting.secret === true) for (const word of words) warnOfLiteral(word, cx);
		const [first] = words;
		if (setting.pattern !== undefined && first && !new RegExp(setting.pattern, 'u').test(first.text)) {
			cx.problem('error', 'dns/bad-setting', first.span, `This is not a valid \`${setting.name}\`.`, {
				hint: setting.description,
			});
		}
		found[setting.name] = setting.list ? words.map(word => word.text) : first?.text;
	};
	const last = byName.get(module.positions[module.positions.length - 1] ?? '');
	const most = last?.list ? Number.POSITIVE_INFINITY : module.positions.length;
	if (cx.count(line, args, 0, most, module.usage)) {
		for (const [at, name] of module.positions.entries()) {
			const setting = byName.get(name)!;
			const words = setting.list ? args.slice(at) : args.slice(at, at + 1);
			if (words.length > 0) take(setting, words, line);
		}
	}
	const known: { [word: string]: SubdirectiveHandler } = {};
	for (const setting of module.settings) {
		const lower: SubdirectiveHandler = (words, at) => {
			const usage = `${setting.name} <value>${setting.list ? '…' : ''}`;
			if (cx.count(at, words, 1, setting.list ? Number.POSITIVE_INFINITY : 1, usage)) take(setting, words, at);
		};
		known[setting.name] = lower;
		for (const word of setting.also ?? []) Object.defineProperty(known, word, { value: lower, enumerable: false });
	}
	cx.subdirectives(line.block, known, `dns ${module.id}`);
	for (const { name, required } of module.settings) {
		if (!required || Object.hasOwn(found, name)) continue;
		cx.problem(
			'error',
			'dns/missing-setting',
			line.words[0]!.span,
			`The provider \`${module.id}\` needs \`${name}\`.`,
			{
				hint: `Usage: ${module.usage}`,
			},
		);
	}
	return found;
}

/** Warns about a literal secret, which everybody who can read the file sees. */
function warnOfLiteral(word: Word, cx: LowerContext): void {
	const { source, start, end } = word.span;
	if (cx.dialect === 'compatfile' || word.text.includes('{env.') || source.text.slice(start, end).includes('{$'))
		return;
	cx.problem('warning', 'secret/in-file', word.span, 'A credential is written into the file.', {
		hint: 'Take it from the environment: `{env.NAME}`.',
	});
}
