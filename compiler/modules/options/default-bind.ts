/** Global option `default_bind`: the interfaces of sites without `bind`. */
import type { SiteBind } from '../../document/document.ts';
import type { GlobalOption } from '../contract/option.ts';
import { LISTEN_HOSTS_SCHEMA, lowerListenHosts } from '../words/lower-listen-host.ts';

/** Global option; sets `settings.default_bind` in the document. */
export const defaultBind: GlobalOption = {
	id: 'default_bind',
	names: { configfile: ['default_bind'], compatfile: ['default_bind'] },
	usage: 'default_bind <host>… [{ protocols h1|h2|h2c|h3… }]',
	summary: 'Sets the hosts on which sites without `bind` listen.',
	documentation: [
		'Several lines add up. The default is every interface. Hosts and `protocols` are those of `bind`.',
		'',
		'```',
		'{',
		'	default_bind 127.0.0.1 ::1',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, defaultBind.usage)) return;
		const hosts = lowerListenHosts(line, 'default_bind', cx);
		settings.default_bind = [...((settings.default_bind ?? []) as SiteBind[]), ...hosts];
	},
	schema: LISTEN_HOSTS_SCHEMA,
	startup: false,
	repeatable: true,
};
