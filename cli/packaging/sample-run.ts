/**
 * The sample that is run to create code caches. It determines which code the caches contain, and must run in the same way in
 * every build.
 */

/** The port of the site in {@link SAMPLE_CONFIGURATION} to which requests are sent. */
export const SAMPLE_PORT = 8080;

/** A typical configuration, which is compiled and served to create code caches. */
export const SAMPLE_CONFIGURATION = `{
	admin 127.0.0.1:2019
	threads 2
}

(common) {
	header -Server
	header X-Content-Type-Options nosniff
}

http://example.com, http://www.example.com {
	import common
	@old path /old /old/*
	redir @old /new permanent
	handle /api/* {
		reverse_proxy 127.0.0.1:9000
	}
	handle {
		root /srv
		file_server
	}
	log
}

:8080 {
	respond "Hello {host}" 200
}
`;

// Some code yields after a few milliseconds. A fake clock makes the code that runs independent of the speed of the machine.
let currentMs = 0;
performance.now = () => (currentMs += 0.001);
Date.now = () => 1_700_000_000_000 + Math.floor(performance.now());
