/** The names of the guides, in the order in which a reader needs them. The file of each is `<name>.md`, beside this one. */

export const TOPICS = [
	...['install', 'first-site', 'https', 'proxying', 'php', 'single-page', 'caching', 'headers', 'logs'],
	...[
		'testing',
		'comparing',
		'zero-downtime',
		'containers',
		'performance',
		'troubleshooting',
		'from-caddy',
		'from-nginx',
	],
	...['from-haproxy', 'production', 'security'],
] as const;

/** The name of a guide. */
export type Topic = (typeof TOPICS)[number];
