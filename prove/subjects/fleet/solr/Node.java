import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import javax.servlet.DispatcherType;
import org.apache.solr.client.solrj.embedded.EmbeddedSolrServer;
import org.apache.solr.common.SolrInputDocument;
import org.apache.solr.servlet.CoreContainerProvider;
import org.apache.solr.servlet.SolrDispatchFilter;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;

/**
 * A node of a search service: Solr as it is, in the server that it is delivered with.
 *
 * Arguments: address, port, Solr's home, documents, different words, seed. Without documents it only asks shards.
 */
public final class Node {
    private static final String CORE = "search";
    private static final int WORDS_OF_DOCUMENT = 120;
    private static final int BATCH = 500;

    public static void main(String[] words) throws Exception {
        String address = words[0];
        int port = Integer.parseInt(words[1]);
        Path home = Path.of(words[2]);
        int documents = Integer.parseInt(words[3]);
        if (documents > 0) {
            index(home, documents, Integer.parseInt(words[4]), Long.parseLong(words[5]));
        }
        System.setProperty("solr.solr.home", home.toString());
        Server server = new Server();
        HttpConfiguration configuration = new HttpConfiguration();
        ServerConnector connector = new ServerConnector(server, new HttpConnectionFactory(configuration));
        connector.setHost(InetAddress.getByName(address).getHostAddress());
        connector.setPort(port);
        server.addConnector(connector);
        // What Solr's web.xml says.
        ServletContextHandler context = new ServletContextHandler(server, "/solr");
        context.addEventListener(new CoreContainerProvider());
        context.addFilter(SolrDispatchFilter.class, "/*", EnumSet.of(DispatcherType.REQUEST));
        server.start();
        System.out.println("ready");
        server.join();
    }

    /** Fills the core before the server runs. */
    private static void index(Path home, int documents, int vocabulary, long seed) throws Exception {
        Random random = new Random(seed);
        try (EmbeddedSolrServer solr = new EmbeddedSolrServer(home, CORE)) {
            List<SolrInputDocument> batch = new ArrayList<>();
            for (int number = 0; number < documents; number++) {
                SolrInputDocument document = new SolrInputDocument();
                document.addField("id", seed + "-" + number);
                document.addField("body", body(random, vocabulary));
                batch.add(document);
                if (batch.size() == BATCH || number + 1 == documents) {
                    solr.add(batch);
                    batch.clear();
                }
            }
            solr.commit();
        }
    }

    /** Low words come often, as in a language. */
    private static String body(Random random, int vocabulary) {
        StringBuilder body = new StringBuilder();
        for (int word = 0; word < WORDS_OF_DOCUMENT; word++) {
            double drawn = random.nextDouble();
            body.append('w').append((int) (vocabulary * drawn * drawn * drawn)).append(' ');
        }
        return body.toString();
    }
}
