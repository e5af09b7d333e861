{
 http_port 25100
 https_port 25101
 skip_install_trust
 storage file_system /tmp/stopt/ste
 auto_https disable_redirects
}
localhost {
 respond "tls"
}
