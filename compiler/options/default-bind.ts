/** Global option `default_bind`: the interfaces of sites without `bind`. */
import { lowerListenHosts } from '../lower/listen-host.ts';
import type { GlobalOption } from './option.ts';

/** `settings.default_bind`. */
export const defaultBind: GlobalOption = {
	id: 'default_bind',
	names: { configfile: ['default_bind'], compatfile: ['default_bind'] },
	usage: 'default_bind <host>…',
	summary: 'Hosts that sites without `bind` listen on.',
	documentation: 'Several lines add up. Every interface if left out.\n\n```\n{\n\tdefault_bind 127.0.0.1\n}\n```',
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, defaultBind.usage)) return;
		const hosts = lowerListenHosts(args, cx);
		settings.default_bind = [...((settings.default_bind ?? []) as string[]), ...hosts];
	},
	schema: { type: 'array', items: { type: 'string' } },
	startup: false,
};
