/** Global options for OCSP and on-demand certificates, and `ech`, which is always rejected with an error of its own. */
import type { Line } from '../../../syntax/ast.ts';
import type { GlobalOption } from '../../contract/option.ts';
import { parseHttpUrl, parsePositiveDuration, valueOption } from './words.ts';

/** Global option; sets `settings.ocsp_interval` in the document. */
export const ocspInterval: GlobalOption = valueOption({
	id: 'ocsp_interval',
	usage: 'ocsp_interval <duration>',
	summary: 'Sets how often OCSP responses are checked for renewal.',
	documentation: 'The default is every hour.\n\n```\n{\n\tocsp_interval 30m\n}\n```',
	schema: { type: 'number', exclusiveMinimum: 0, description: 'Milliseconds.' },
	parseValue: parsePositiveDuration,
});

/** Global option; sets `settings.ocsp_stapling` in the document. */
export const ocspStapling: GlobalOption = valueOption({
	id: 'ocsp_stapling',
	usage: 'ocsp_stapling off',
	summary: 'Disables OCSP stapling.',
	documentation:
		"By default, OCSP responses are stapled for every certificate, managed or from a file, that names a responder and has its issuer's certificate in the chain.\n\n```\n{\n\tocsp_stapling off\n}\n```",
	schema: { type: 'boolean' },
	parseValue: (word, cx) => {
		if (word.text === 'off') return false;
		const message =
			cx.dialect === 'compatfile' ? `invalid argument '${word.text}'` : `\`${word.text}\` is not allowed here.`;
		cx.problem('error', 'value/unknown', word.span, message, { hint: 'Write `off`, or leave the option out.' });
		return undefined;
	},
});

/** Global option; sets `settings.on_demand_tls` in the document. */
export const onDemandTls: GlobalOption = {
	id: 'on_demand_tls',
	names: { configfile: ['on_demand_tls'], compatfile: ['on_demand_tls'] },
	usage: 'on_demand_tls { ask <url> | permission http <url> }',
	summary: 'Sets who decides which certificates may be obtained on demand.',
	documentation: [
		'The URL is requested with `?domain=<name>`: a status from 200 to 299 permits the name, any other forbids it.',
		'',
		'```',
		'{',
		'	on_demand_tls {',
		'		ask http://127.0.0.1:5555/allowed',
		'	}',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		cx.count(line, line.words.slice(1), 0, 0, onDemandTls.usage);
		let askUrl: string | undefined;
		const lowerAskUrl = (innerLine: Line, args: Line['words']) => {
			if (askUrl !== undefined) {
				const message = "on-demand TLS permission module (or 'ask') already specified";
				cx.problem('error', 'option/given-twice', innerLine.words[0]!.span, message);
				return;
			}
			if (cx.count(innerLine, args, 1, 1, `${innerLine.words[0]!.text} <url>`))
				askUrl = parseHttpUrl(args[0]!, cx) ?? '';
		};
		const reportRemovedOption = (_args: unknown, innerLine: Line) => {
			const optionWord = innerLine.words[0]!;
			const message = `the on_demand_tls '${optionWord.text}' option is no longer supported, remove it from your config`;
			cx.problem('error', 'option/no-longer', optionWord.span, message);
		};
		cx.subdirectives(
			line.block,
			{
				ask: (args, innerLine) => lowerAskUrl(innerLine, args),
				permission: (args, innerLine) => {
					const [kindWord, ...urlWords] = args;
					if (!kindWord || cx.oneOf(kindWord, ['http'], 'permission') === undefined) {
						if (!kindWord) cx.count(innerLine, args, 2, 2, 'permission http <url>');
						return;
					}
					const [endpointLine] = (innerLine.block?.lines ?? []).filter(
						blockLine => blockLine.words[0]!.text === 'endpoint',
					);
					lowerAskUrl(innerLine, urlWords.length > 0 || !endpointLine ? urlWords : endpointLine.words.slice(1));
				},
				interval: reportRemovedOption,
				burst: reportRemovedOption,
			},
			'on_demand_tls',
		);
		if (askUrl !== undefined) settings.on_demand_tls = { ask: askUrl };
		else if (!line.block || line.block.lines.length === 0) {
			const message = 'expected at least one config parameter for on_demand_tls';
			cx.problem('error', 'option/incomplete', line.words[0]!.span, message);
		}
	},
	schema: {
		type: 'object',
		properties: {
			ask: { type: 'string', minLength: 1, secret: 'url', description: 'URL that permits or forbids names.' },
		},
		required: ['ask'],
		additionalProperties: false,
	},
	startup: false,
};
