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

/** A setting of a DNS provider. */
export interface DnsSetting {
	/** The setting's key in the document, which is also its name in both dialects. */
	readonly name: string;
	readonly description: string;
	readonly required?: boolean;
	/**
	 * Set if the value is redacted when a document is shown: completely if true, otherwise only the secrets in the URL or argument.
	 */
	readonly secret?: true | 'url' | 'argument';
	/** True if the setting takes all remaining words. */
	readonly isList?: boolean;
	readonly pattern?: string;
	readonly aliases?: readonly string[];
}

/** A DNS provider; the module ID is `dns.providers.<id>`. */
export interface DnsModule {
	/** Value of `provider` in the document, which is also the provider's name in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	readonly settings: readonly DnsSetting[];
	/** Names of the settings that take their values from the words after the provider's name, in order. */
	readonly argumentSettingNames: readonly string[];
}

/** Returns the schema of the properties in addition to `provider`. */
export function dnsSettingProperties({ settings }: DnsModule): { readonly [name: string]: Schema } {
	return Object.fromEntries(
		settings.map(({ name, description, secret, isList, pattern }) => {
			const textSchema: Schema = { type: 'string', minLength: 1, ...(pattern === undefined ? {} : { pattern }) };
			const secretField = secret === undefined ? {} : { secret };
			return [
				name,
				{
					...(isList ? { type: 'array', items: { ...textSchema, ...secretField } } : { ...textSchema, ...secretField }),
					description,
				},
			];
		}),
	);
}

/** Lowers the words after a provider's name, and the block of the line, to the provider's settings. */
export function lowerDnsSettings(
	module: DnsModule,
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
): { readonly [setting: string]: unknown } {
	const valueByName: { [setting: string]: unknown } = {};
	const settingByName = new Map(module.settings.map(setting => [setting.name, setting]));
	const setValue = (setting: DnsSetting, words: readonly Word[], innerLine: Line): void => {
		if (Object.hasOwn(valueByName, setting.name)) {
			cx.problem('error', 'dns/given-twice', innerLine.words[0]!.span, `\`${setting.name}\` is given more than once.`);
			return;
		}
		if (setting.secret === true) for (const word of words) warnOfLiteralSecret(word, cx);
		const [firstWord] = words;
		if (setting.pattern !== undefined && firstWord && !new RegExp(setting.pattern, 'u').test(firstWord.text)) {
			cx.problem('error', 'dns/bad-setting', firstWord.span, `This is not a valid \`${setting.name}\`.`, {
				hint: setting.description,
			});
		}
		valueByName[setting.name] = setting.isList ? words.map(word => word.text) : firstWord?.text;
	};
	const lastArgumentSetting = settingByName.get(
		module.argumentSettingNames[module.argumentSettingNames.length - 1] ?? '',
	);
	const maxArguments = lastArgumentSetting?.isList ? Number.POSITIVE_INFINITY : module.argumentSettingNames.length;
	if (cx.count(line, args, 0, maxArguments, module.usage)) {
		for (const [index, name] of module.argumentSettingNames.entries()) {
			const setting = settingByName.get(name)!;
			const words = setting.isList ? args.slice(index) : args.slice(index, index + 1);
			if (words.length > 0) setValue(setting, words, line);
		}
	}
	const handlers: { [word: string]: SubdirectiveHandler } = {};
	for (const setting of module.settings) {
		const handleSetting: SubdirectiveHandler = (words, innerLine) => {
			const usage = `${setting.name} <value>${setting.isList ? '…' : ''}`;
			if (cx.count(innerLine, words, 1, setting.isList ? Number.POSITIVE_INFINITY : 1, usage))
				setValue(setting, words, innerLine);
		};
		handlers[setting.name] = handleSetting;
		for (const word of setting.aliases ?? [])
			Object.defineProperty(handlers, word, { value: handleSetting, enumerable: false });
	}
	cx.subdirectives(line.block, handlers, `dns ${module.id}`);
	for (const { name, required } of module.settings) {
		if (!required || Object.hasOwn(valueByName, name)) continue;
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
	return valueByName;
}

/** Warns about a secret that is written into the configuration, where everybody who can read the file sees it. */
function warnOfLiteralSecret(word: Word, cx: LowerContext): void {
	const { source, start, end } = word.span;
	if (cx.dialect === 'compatfile' || word.text.includes('{env.') || source.text.slice(start, end).includes('{$'))
		return;
	cx.problem('warning', 'secret/in-file', word.span, 'A credential is written into the file.', {
		hint: 'Take it from the environment: `{env.NAME}`.',
	});
}
