/** Global option `log`: the process logs. */
import type { SiteLog } from '../../document/document.ts';
import type { GlobalOption } from '../contract/option.ts';
import { LOG_SCHEMA_PROPERTIES, lowerLogBlock } from '../providers/log-settings.ts';

/** Global option; sets `settings.logs` in the document. */
export const log: GlobalOption = {
	id: 'logs',
	names: { configfile: ['log'], compatfile: ['log'] },
	usage:
		'log [name] [{ output <writer>; format <encoder>; level <level>; include <namespace>…; exclude <namespace>… }]',
	summary: 'Configures process logs: outputs, formats and namespaces.',
	documentation: [
		'Without a name, it configures `default`, the process log; output, format and sampling are the same as for `log` in a site. `include` and `exclude` select namespaces by prefix; the',
		'longer prefix wins. A reload applies changes.',
		'',
		'```',
		'{',
		'	log {',
		'		output file /var/log/svc.log',
		'		level WARN',
		'	}',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.count(line, args, 0, 1, log.usage);
		const logName = args[0]?.text ?? 'default';
		const logsByName = (settings.logs ?? {}) as { [name: string]: SiteLog };
		if (Object.hasOwn(logsByName, logName)) {
			cx.problem(
				'error',
				'log/defined-twice',
				(args[0] ?? line.words[0]!).span,
				`duplicate global log option for: ${logName}`,
			);
		}
		const includedNamespaces: string[] = [];
		const excludedNamespaces: string[] = [];
		const draft = lowerLogBlock(line, cx, {
			include: (names, innerLine) => {
				if (cx.count(innerLine, names, 1, Number.POSITIVE_INFINITY, 'include <namespace>…')) {
					includedNamespaces.push(...names.map(word => word.text));
				}
			},
			exclude: (names, innerLine) => {
				if (cx.count(innerLine, names, 1, Number.POSITIVE_INFINITY, 'exclude <namespace>…')) {
					excludedNamespaces.push(...names.map(word => word.text));
				}
			},
		});
		const contradictoryNamespace = includedNamespaces.find(namespace => excludedNamespaces.includes(namespace));
		if (contradictoryNamespace !== undefined) {
			const message = `\`${contradictoryNamespace}\` is both included and excluded.`;
			cx.problem('error', 'log/contradiction', line.words[0]!.span, message);
		}
		const logSettings: SiteLog = {
			...draft,
			...(includedNamespaces.length > 0 ? { include: includedNamespaces } : {}),
			...(excludedNamespaces.length > 0 ? { exclude: excludedNamespaces } : {}),
		};
		settings.logs = { ...logsByName, [logName]: cx.origin(logSettings, line.span) };
	},
	schema: {
		type: 'object',
		description: 'Logs by name; `default` is the process log.',
		additionalProperties: {
			type: 'object',
			properties: {
				...LOG_SCHEMA_PROPERTIES,
				include: {
					type: 'array',
					items: { type: 'string' },
					description: 'Namespaces to write, by prefix; default all.',
				},
				exclude: { type: 'array', items: { type: 'string' }, description: 'Namespaces not to write, by prefix.' },
			},
			additionalProperties: false,
		},
	},
	startup: false,
	repeatable: true,
};
